"""Watermarks of the DataCoolie framework: its files, and its ``dc_framework_watermarks`` table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core import storage
from datacoolie_core.errors import DataCoolieError, StorageError, WatermarkError
from datacoolie_core.plan.tracking import state_columns
from datacoolie_core.run.watermarks import set_watermark, show
from datacoolie_core.state.database import open_engine, shown
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
Outcome = Literal[
    "imported", "would import", "kept", "empty", "unknown dataflow", "unreadable", "failed"
]


@dataclass(frozen=True)
class Found:
    """A watermark of the framework.

    Attributes:
        place: The file, or the table's row.
        key: Ends with the dataflow's id; in a table it is the id.
        text: JSON.
        trouble: Why it has no text.
    """

    place: str
    key: str
    text: str
    trouble: str | None = None


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
        if name != FILE:
            continue
        key = folder.rpartition("/")[2]
        try:
            yield Found(info.uri, key, storage.read_text(info.uri))
        except StorageError as error:
            yield Found(info.uri, key, "", trouble=error.message)


def watermark_rows(url: str) -> Iterator[Found]:
    """Yield the watermarks of the framework's table.

    Args:
        url: As :func:`~datacoolie_core.state.database.database_url` gives it.

    Raises:
        SettingsError: The URL is none, or a package is missing.
        WatermarkError: The database does not answer, or has no such table.
    """
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError

    engine = open_engine(url)
    try:
        with engine.connect() as link:
            rows = link.execute(text(f"SELECT dataflow_id, current_value FROM {TABLE}")).all()  # noqa: S608
    except SQLAlchemyError as error:
        # the driver's own words: SQLAlchemy adds the statement and a link
        cause = str(getattr(error, "orig", None) or type(error).__name__).strip()
        raise WatermarkError(
            f"the framework's watermarks can't be read ({cause.splitlines()[0]})",
            place=f"{shown(url)}, table {TABLE}",
            remedy="Check the URL, and that the framework's tables are there.",
            code="import_failed",
        ) from error
    finally:
        engine.dispose()
    for dataflow_id, value in rows:
        # a driver gives a JSON column as what the JSON says
        written = value if isinstance(value, str) else json.dumps(value)
        yield Found(f"{TABLE}, dataflow_id '{dataflow_id}'", str(dataflow_id), written)


def import_watermarks(
    found: Sequence[Found],
    dataflows: Sequence[Dataflow],
    context: RunContext,
    *,
    dry_run: bool = False,
    force: bool = False,
) -> list[Imported]:
    """Take over watermarks; a column whose own value is as high or higher keeps it.

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
        values, note = _values(found, flow)
    except (WatermarkError, ValueError, TypeError, AttributeError) as error:
        told = error.message if isinstance(error, WatermarkError) else str(error)
        return Imported(found.place, "unreadable", flow, message=told)
    if not values:
        return Imported(found.place, "empty", flow, message=note)
    try:
        return _taken(found, flow, values, note, context, dry_run=dry_run, force=force)
    except DataCoolieError as error:
        return Imported(found.place, "failed", flow, message=str(error))


def _taken(
    found: Found,
    flow: Dataflow,
    values: Mapping[str, Scalar],
    note: str | None,
    context: RunContext,
    *,
    dry_run: bool,
    force: bool,
) -> Imported:
    """Set what is above the present watermark, or all of it by force."""
    there = show(flow, context)
    if there.trouble and not force:
        return Imported(found.place, "failed", flow, message=there.trouble)
    present = there.effective
    if present is not None and not force:
        if present.replace_next:
            return Imported(found.place, "kept", flow, message="ours was reset")
        values = {
            column: value
            for column, value in values.items()
            if _higher(value, present.watermark.get(column))
        }
        if not values:
            mine = present.watermark
            return Imported(found.place, "kept", flow, mine, "ours is as high or higher")
    if dry_run:
        return Imported(found.place, "would import", flow, values, note)
    state = set_watermark(flow, values, context)
    return Imported(found.place, "imported", flow, state.watermark, note)


def _owner(key: str, dataflows: Sequence[Dataflow]) -> Dataflow | None:
    """Return the dataflow whose id the key is, or ends with; the longest id counts."""
    fits = [
        one for one in dataflows if key == one.dataflow_id or key.endswith(f"_{one.dataflow_id}")
    ]
    return max(fits, key=lambda one: len(one.dataflow_id), default=None)


def _values(found: Found, flow: Dataflow) -> tuple[dict[str, Scalar], str | None]:
    if found.trouble:
        raise ValueError(found.trouble)
    if found.text.strip().lower() in _NOTHING:
        return {}, "no state"
    document = json.loads(found.text)
    columns = {name.casefold(): name for name in state_columns(flow)}
    folder = None if _FOLDER_KEY in columns else document.pop(_FOLDER_KEY, None)
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


def _higher(value: Scalar, present: Scalar | None) -> bool:
    """Say whether an imported value is above ours; of two kinds, ours is kept."""
    if present is None:
        return True
    try:
        return bool(value > present)  # type: ignore[operator] # pyright: ignore[reportOperatorIssue,reportUnknownArgumentType]
    except TypeError:
        return False
