"""From an error of the engine, raised while a batch is consumed, to one that a person can use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.bad_value import BadValue, Trouble
from datacoolie_core.engines.names import match, remedy_for
from datacoolie_core.errors import LoadError, ReadError, TransformError
from datacoolie_core.transforms.slots import Shaped
from datacoolie_core.transforms.values import cleaned

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.readers.batch import Batch

_CAST = re.compile(
    r"conversion from `(?P<own>[^`]+)` to `(?P<target>[^`]+)` failed in column '(?P<column>[^']*)'"
    r".*?values?: \[(?P<values>.*?)\]",
    re.DOTALL,
)
_NO_COLUMN = re.compile(r'unable to find column "(?P<column>.*?)"; valid columns: \[(?P<all>.*?)\]')
_ENGINE_NAME = re.compile(r"^([iuf])(\d+)$")
_KINDS = {"i": "int", "u": "uint", "f": "float"}
_FILE_PATH = "__file_path"


def explain(error: Exception, batch: Batch, dataflow: Dataflow) -> Exception:
    """Return the error that says in which phase, column, value and file a load broke.

    The rows are looked at once more to find the file; an error that is not the engine's comes back
    as it is.

    Args:
        error: What consuming the batch's frame raised.
        batch: The batch.
        dataflow: Whose load it is.
    """
    known = batch.diagnose(error)
    if known is not None:
        return known
    if isinstance(error, LoadError):
        return error
    trouble = BadValue.trouble(error) or _failed_cast(error)
    if trouble is not None:
        return _bad_value(trouble, batch, dataflow)
    if isinstance(error, OSError):
        return ReadError(
            f"the source can't be read: {_first_line(error)}",
            remedy="Check that the source is there and answers.",
            retryable=True,
        )
    if isinstance(error, pl.exceptions.PolarsError):
        return _engine_error(error)
    return error


def _failed_cast(error: Exception) -> Trouble | None:
    found = _CAST.search(str(error))
    if found is None:
        return None
    value = found["values"].split(", ")[0].strip('"')
    target = _ENGINE_NAME.sub(lambda short: _KINDS[short[1]] + short[2], found["target"])
    return Trouble(found["column"], value, target)


def _bad_value(trouble: Trouble, batch: Batch, dataflow: Dataflow) -> TransformError:
    file = _file_with(trouble, batch, dataflow)
    where = f"column '{trouble.column}'{f', {file}' if file else ''}"
    reason = f": {trouble.reason}" if trouble.reason else ""
    masked = [column for rule in dataflow.transform.masking_rules for column in rule.columns]
    # what a table may not show, a log may not show either
    value = repr(trouble.value) if match(trouble.column, masked) is None else "(masked)"
    hinted = match(trouble.column, [hint.column_name for hint in dataflow.transform.schema_hints])
    return TransformError(
        f"the value {value} is no {trouble.target}{reason}",
        place=where,
        remedy="Correct the source, or the schema hint of the column."
        if hinted
        else "Correct the source, or add a schema hint for the column.",
        code="cast_failed",
    )


def _file_with(trouble: Trouble, batch: Batch, dataflow: Dataflow) -> str | None:
    """Return the first file that holds the value, None if the source has no files."""
    if batch.source is None:
        return None
    try:
        columns = batch.source.collect_schema()
        # the value is as the value rules left it, not as the file has it
        source = cleaned(Shaped(batch.source, dict(columns)), dataflow).frame
        column = match(trouble.column, columns)
        if column is None or _FILE_PATH not in columns:
            return None
        same = pl.col(column).cast(pl.String) == trouble.value
        found = source.filter(same).select(_FILE_PATH).head(1).collect(engine="streaming")
    except (pl.exceptions.PolarsError, BadValue):
        return None  # the value breaks the scan itself, before its file can be asked for
    return found.item() if found.height else None


def _engine_error(error: pl.exceptions.PolarsError) -> LoadError:
    missing = _NO_COLUMN.search(str(error))
    if missing:
        columns = re.findall(r'"(.*?)"', missing["all"])
        return TransformError(
            f"there is no column '{missing['column']}'",
            remedy=remedy_for(missing["column"], columns),
            code="missing_column",
        )
    return TransformError(
        _first_line(error),
        remedy="Correct the expression, or the types that it works on.",
        code="bad_expression",
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
