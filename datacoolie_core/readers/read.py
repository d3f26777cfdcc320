"""The door to all readers: from a request to a lazy frame that observes what passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core import registry
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.avro_files import open_avro
from datacoolie_core.readers.csv_files import open_csv
from datacoolie_core.readers.database import open_database
from datacoolie_core.readers.delta_tables import open_delta
from datacoolie_core.readers.excel_files import open_excel
from datacoolie_core.readers.functions import open_function
from datacoolie_core.readers.json_documents import open_json
from datacoolie_core.readers.json_lines import open_json_lines
from datacoolie_core.readers.observe import observed
from datacoolie_core.readers.parquet_files import open_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.readers.batch import Batch, ReadRequest
    from datacoolie_core.readers.source import Source

BUILT_IN: dict[str, Callable[[ReadRequest], Source]] = {
    "avro": open_avro,
    "csv": open_csv,
    "delta": open_delta,
    "excel": open_excel,
    "function": open_function,
    "json": open_json,
    "jsonl": open_json_lines,
    "parquet": open_parquet,
    "sql": open_database,
}


def open_batch(request: ReadRequest) -> Batch:
    """Return a source's rows, bounded as the request says.

    Nothing but schemas (and some values of a text watermark) is read here; the rows come when the
    frame is consumed. Call ``close`` of the batch afterwards.

    Raises:
        ReadError: The source, an option or a bound can't be used.
        WatermarkError: The stored watermark does not fit the column.
    """
    source = _opener(request)(request)
    try:
        return observed(source, request)
    except pl.exceptions.PolarsError as error:
        source.close()
        raise source.diagnose(error) or _unreadable(source, error) from error
    except BaseException:
        source.close()
        raise


def _unreadable(source: Source, error: Exception) -> ReadError:
    return ReadError(
        f"the source can't be read: {str(error).splitlines()[0]}",
        place=str(source.action.get("path") or "source.query"),
        remedy="Correct the source.",
    )


def _opener(request: ReadRequest) -> Callable[[ReadRequest], Source]:
    connection = request.dataflow.source.connection
    opener = registry.readers.find(connection.format) or BUILT_IN.get(connection.format)
    if opener is None:
        supported = sorted({*BUILT_IN, *registry.readers.all()})
        raise ReadError(
            f"format '{connection.format}' can't be read yet",
            place=f"connection '{connection.name}'",
            remedy=f"Use one of: {', '.join(supported)}.",
            code="unsupported_format",
        )
    if request.query is not None and connection.connection_type == "file":
        raise ReadError(
            "a source of files has no query",
            place="source.query",
            remedy="Name a table, or use a lakehouse connection.",
            code="query_not_supported",
        )
    return opener
