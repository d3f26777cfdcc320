"""Watermarks of the DataCoolie framework: its files, and its ``dc_framework_watermarks`` table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core import storage
from datacoolie_core.errors import DataCoolieError, WatermarkError
from datacoolie_core.run.watermarks import set_watermark, show
from datacoolie_core.state.values import decode_watermark, encode_watermark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.run.context import RunContext

FILE = "watermark_value.json"
TABLE = "dc_framework_watermarks"
_NOTHING = {"", "null", "none", "{}"}
_FOLDER_KEY = "__date_folder_partition__"
Outcome = Literal["imported", "would import", "kept", "empty", "unknown dataflow", "unreadable"]


@dataclass(frozen=True)
class Found:
    """A watermark of the framework.

    Attributes:
        place: The file, or the table's row.
        key: Ends with the dataflow's id; in a table it is the id.
        text: JSON.
    """

    place: str
    key: str
    text: str


@dataclass(frozen=True)
class Imported:
    """What became of a watermark."""

    place: str
    outcome: Outcome
    dataflow: Dataflow | None = None
    watermark: Mapping[str, Scalar] | None = None
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry in ``watermark import --json`` (docs/watermarks.md)."""
        return {
            "place": self.place,
            "outcome": self.outcome,
            "name": self.dataflow.name if self.dataflow else None,
            "dataflow_id": self.dataflow.dataflow_id if self.dataflow else None,
            "watermark": encode_watermark(self.watermark) if self.watermark else None,
            "message": self.message,
        }


def watermark_files(root: str) -> Iterator[Found]:
    """Yield the watermarks below a folder: ``<stage>_<name>_<dataflow id>/watermark_value.json``.

    Raises:
        StorageError: The folder can't be listed.
    """
    for info in storage.list_files(root, recursive=True):
        folder, _, name = info.uri.rpartition("/")
        if name == FILE:
            yield Found(info.uri, folder.rpartition("/")[2], storage.read_text(info.uri))


def watermark_rows(url: str) -> Iterator[Found]:
    """Yield the watermarks of the framework's table.

    Args:
        url: An SQLAlchemy URL.

    Raises:
        WatermarkError: The database does not answer, or has no such table.
    """
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    try:
        place = make_url(url)
        if place.drivername == "postgresql":
            place = place.set(drivername="postgresql+psycopg")
        engine = create_engine(place)
        with engine.connect() as link:
            rows = link.execute(text(f"SELECT dataflow_id, current_value FROM {TABLE}")).all()  # noqa: S608
        engine.dispose()
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        cause = str(getattr(error, "orig", None) or type(error).__name__)
        raise WatermarkError(
            f"its watermarks can't be read ({cause.splitlines()[0]})",
            place=f"table {TABLE}",
            remedy="Check the URL, and that the framework's tables are there.",
            code="import_failed",
        ) from error
    for dataflow_id, value in rows:
        yield Found(f"{TABLE}, dataflow_id '{dataflow_id}'", str(dataflow_id), value or "")


def import_watermarks(
    found: Sequence[Found],
    dataflows: Sequence[Dataflow],
    context: RunContext,
    *,
    dry_run: bool = False,
    force: bool = False,
) -> list[Imported]:
    """Take over watermarks; a higher one that is there is kept.

    The first load goes on above an imported watermark. Rows that tie with it, or lie above it, are
    compared with the destination, so that none is lost and none doubled.

    Args:
        found: Of the framework.
        dataflows: Those that may get one.
        context: The run that this is.
        dry_run: Only say what would be done.
        force: Take them over even where a higher one is there.
    """
    return [_imported(one, dataflows, context, dry_run=dry_run, force=force) for one in found]


def _imported(
    found: Found,
    dataflows: Sequence[Dataflow],
    context: RunContext,
    *,
    dry_run: bool,
    force: bool,
) -> Imported:
    flow = _owner(found.key, dataflows)
    if flow is None:
        return Imported(
            found.place, "unknown dataflow", message=f"no dataflow has the id of {found.key!r}"
        )
    try:
        values, note = _values(found.text, flow)
    except (WatermarkError, ValueError, TypeError, AttributeError) as error:
        return Imported(found.place, "unreadable", flow, message=str(error))
    if not values:
        return Imported(found.place, "empty", flow, message=note)
    try:
        present = show(flow, context).effective
        if present is not None and not force and not _higher(values, present.watermark):
            return Imported(
                found.place, "kept", flow, present.watermark, "ours is as high or higher"
            )
        if dry_run:
            return Imported(found.place, "would import", flow, values, note)
        state = set_watermark(flow, values, context)
    except DataCoolieError as error:
        return Imported(found.place, "unreadable", flow, message=str(error))
    return Imported(found.place, "imported", flow, state.watermark, note)


def _owner(key: str, dataflows: Sequence[Dataflow]) -> Dataflow | None:
    """Return the dataflow whose id the key is, or ends with; the longest id counts."""
    fits = [
        one for one in dataflows if key == one.dataflow_id or key.endswith(f"_{one.dataflow_id}")
    ]
    return max(fits, key=lambda one: len(one.dataflow_id), default=None)


def _values(text: str, flow: Dataflow) -> tuple[dict[str, Scalar], str | None]:
    if text.strip().lower() in _NOTHING:
        return {}, "no state"
    document = json.loads(text)
    folder = document.pop(_FOLDER_KEY, None)
    columns = {name.casefold(): name for name in flow.source.watermark_columns}
    document = {column: value for column, value in document.items() if value is not None}
    decoded = decode_watermark(document)
    values = {
        columns[name.casefold()]: value
        for name, value in decoded.items()
        if name.casefold() in columns
    }
    lost = [name for name in decoded if name.casefold() not in columns]
    if folder is not None:
        lost.append("the date folder")
    return values, f"left out, no watermark column: {', '.join(lost)}" if lost else None


def _higher(values: Mapping[str, Scalar], present: Mapping[str, Scalar]) -> bool:
    """Say whether any imported value is above the present one, or of another kind."""
    for column, value in values.items():
        if column not in present:
            return True
        try:
            if value > present[column]:  # type: ignore[operator] # pyright: ignore[reportOperatorIssue]
                return True
        except TypeError:
            return True
    return False
