"""Watermark values that people write, as values of the column's type."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

from datacoolie_core.errors import WatermarkError
from datacoolie_core.metadata.hint_types import parse_type
from datacoolie_core.plan.columns import destination_column
from datacoolie_core.run.prepare import prepare_destination
from datacoolie_core.writers.destination import writer_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.run.context import RunContext

Kind = Literal["int", "float", "decimal", "date", "timestamp", "time", "text"]
KINDS: tuple[Kind, ...] = (
    "int",
    "float",
    "decimal",
    "date",
    "timestamp",
    "time",
    "text",
)
_PYTHON: tuple[tuple[type, Kind], ...] = (
    (datetime, "timestamp"),
    (date, "date"),
    (time, "time"),
    (int, "int"),
    (float, "float"),
    (Decimal, "decimal"),
    (str, "text"),
)
_LOGICAL: tuple[tuple[str, Kind], ...] = (
    ("timestamp", "timestamp"),
    ("time", "time"),
    ("date", "date"),
    ("int", "int"),
    ("uint", "int"),
    ("float", "float"),
    ("decimal", "decimal"),
    ("string", "text"),
)
_DELTA: dict[str, Kind] = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "string": "text",
}


def typed_value(
    text: str,
    column: str,
    dataflow: Dataflow,
    present: Mapping[str, Scalar],
    context: RunContext,
    kind: Kind | None = None,
) -> Scalar:
    """Return a value that somebody wrote, in the type of its column.

    The type is the one asked for, else that of the present watermark, of a schema hint, or of the
    destination's column.

    Args:
        text: As written; timestamps as ISO 8601.
        column: The watermark column.
        dataflow: Whose it is.
        present: The present watermark.
        context: The run.
        kind: The type, if it is said.

    Raises:
        WatermarkError: The text is no value of the type, or nothing says the type.
    """
    asked = kind or _kind_of(column, dataflow, present, context)
    zone = dataflow.transform.configure.timestamp_timezone
    before = next((v for name, v in present.items() if name.casefold() == column.casefold()), None)
    try:
        value = _READERS[asked](text.strip())
    except (ValueError, InvalidOperation) as error:
        raise WatermarkError(
            f"{text!r} is no {asked}",
            dataflow=dataflow.label,
            place=f"column '{column}'",
            remedy="Write for example 42, 2025-01-31 or 2025-01-31T06:00:00Z, or name another"
            " --type.",
            code="bad_watermark",
        ) from error
    if not isinstance(value, datetime) or not isinstance(before, datetime) or zone is not None:
        return value
    return _like(value, before, column, dataflow)


def _like(value: datetime, before: datetime, column: str, dataflow: Dataflow) -> datetime:
    """Return an instant where the watermark is an instant, and a local time where it is one."""
    if before.tzinfo is not None:
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if value.tzinfo is None:
        return value
    raise WatermarkError(
        f"{value.isoformat()} has a time zone, the column's values have none",
        dataflow=dataflow.label,
        place=f"column '{column}'",
        remedy=f"Write it as the source does, such as {before.isoformat()}, or declare the zone"
        " of the values: transform.configure.timestamp_timezone.",
        code="bad_watermark",
    )


def _whole(text: str) -> int:
    # int() also takes 1_000 and other scripts' digits, which is more likely a slip
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError(text)
    return value


def _timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment


_READERS: dict[Kind, Callable[[str], Scalar]] = {
    "int": _whole,
    "float": _finite,
    "decimal": _decimal,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timestamp": _timestamp,
    "text": str,
}


def _kind_of(
    column: str, dataflow: Dataflow, present: Mapping[str, Scalar], context: RunContext
) -> Kind:
    for name, value in present.items():
        if name.casefold() == column.casefold() and not isinstance(value, bool | bytes):
            return next(kind for python, kind in _PYTHON if isinstance(value, python))
    for hint in dataflow.transform.schema_hints:
        if hint.column_name.casefold() == column.casefold() and hint.is_active:
            logical = parse_type(hint.data_type).kind
            for name, found in _LOGICAL:
                if logical.startswith(name):
                    return found
    stored: Kind | None = _stored_kind(column, dataflow, context)
    if stored is None:
        raise WatermarkError(
            "nothing says which type it has",
            dataflow=dataflow.label,
            place=f"column '{column}'",
            remedy=f"Name it: --type {'|'.join(KINDS)}.",
            code="unknown_type",
        )
    return stored


def _stored_kind(column: str, dataflow: Dataflow, context: RunContext) -> Kind | None:
    target = destination_column(dataflow, column)
    if target is None:
        return None
    destination, uri = prepare_destination(dataflow, context)
    options = destination.connection.configure.storage_options
    schema = writer_for(destination).read_schema(uri, options) or {}
    dtype = next((d for name, d in schema.items() if name.casefold() == target.casefold()), "")
    if dtype.startswith("decimal"):
        return "decimal"
    return _DELTA.get(dtype)
