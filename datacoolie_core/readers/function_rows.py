"""What a source function may return, as a frame that can be read more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.source import Source
from datacoolie_core.readers.spill import Spill

Trouble = Callable[[Exception], ReadError]
_WANTED = (
    "a polars frame (lazy or not), a pyarrow table or reader, an iterator of such frames, or None"
)


def rows_of(result: Any, name: str, action: Mapping[str, Any], trouble: Trouble) -> Source:
    """Return the rows of what a function returned.

    Args:
        result: What it returned; None is no rows.
        name: The function, for messages.
        action: For the run's record.
        trouble: Makes the error of an exception inside the function.

    Raises:
        ReadError: It is nothing with rows, or making the rows failed.
    """
    if result is None:
        return Source(pl.LazyFrame(), action, empty=True)
    if isinstance(result, pl.LazyFrame):
        try:
            result.collect_schema()
        except Exception as error:
            raise trouble(error) from error
        return Source(result, action)
    pieces = _pieces(result)
    if pieces is not None:
        return _spilled(pieces, name, action, trouble)
    return Source(_eager(result, name).lazy(), action)


def _pieces(result: Any) -> Iterable[Any] | None:
    """Return what comes in pieces, which may come once only; None for a whole."""
    if hasattr(result, "read_next_batch") and hasattr(result, "schema"):
        return _batches(result)
    if isinstance(result, Iterator):
        return cast("Iterator[Any]", result)
    frames = isinstance(result, list | tuple) and all(
        isinstance(piece, pl.DataFrame | pl.LazyFrame) for piece in cast("Iterable[object]", result)
    )
    return cast("Iterable[Any]", result) if frames else None


def _batches(reader: Any) -> Iterator[pl.DataFrame]:
    """Yield the batches of an Arrow reader, and its columns even if it has none."""
    yield pl.DataFrame(reader.schema.empty_table())
    for batch in reader:
        yield pl.DataFrame(batch)


def _eager(result: Any, name: str) -> pl.DataFrame:
    if isinstance(result, pl.DataFrame):
        return result
    if isinstance(result, pl.LazyFrame):
        return result.collect(engine="streaming")
    if hasattr(result, "__arrow_c_stream__") and not isinstance(result, pl.Series):
        return pl.DataFrame(result)
    if hasattr(result, "__arrow_c_array__"):
        return pl.DataFrame(result)
    raise ReadError(
        f"it returned {_article(type(result).__name__)}",
        place=f"function '{name}'",
        remedy=f"Return {_WANTED}.",
        code="bad_result",
    )


def _article(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def _spilled(
    pieces: Iterable[Any], name: str, action: Mapping[str, Any], trouble: Trouble
) -> Source:
    spill = Spill()
    try:
        frame = _kept(spill, pieces, name, trouble)
    except BaseException:
        spill.close()
        raise
    if frame is None:
        spill.close()
        return Source(pl.LazyFrame(), action, empty=True)
    return Source(frame, action, close=spill.close)


def _kept(spill: Spill, pieces: Iterable[Any], name: str, trouble: Trouble) -> pl.LazyFrame | None:
    try:
        for number, piece in enumerate(pieces, 1):
            spill.add(_eager(piece, name), f"frame {number}")
    except ReadError:
        raise
    except Exception as error:
        raise trouble(error) from error
    try:
        return spill.frame()
    except ReadError as error:
        raise ReadError(
            error.message,
            place=f"function '{name}', {error.place}",
            remedy="Give the column one type in every frame.",
            code=error.code,
        ) from error
