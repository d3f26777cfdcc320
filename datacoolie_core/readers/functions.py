"""Python functions as sources: found, called with the bounds, and their rows bounded once more.

A function may use its bounds, or leave them alone: whatever it returns passes the same filter as
the rows of every other source, so nothing is loaded twice.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.function_engine import FunctionEngine
from datacoolie_core.readers.function_import import found_function
from datacoolie_core.readers.function_rows import rows_of
from datacoolie_core.readers.function_trouble import failed, user_line
from datacoolie_core.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacoolie_core.readers.batch import ReadRequest

NOT_RUN = "function_not_run"
_KEYWORDS = "engine, source, watermark_start, watermark_end"


def open_function(request: ReadRequest) -> Source:
    """Return the rows that a function gives.

    Raises:
        ReadError: It may not be called, is not there, raises an error, or returns no rows.
    """
    name = request.dataflow.source.python_function
    if name is None:
        raise ReadError(
            "a function source needs python_function",
            place="source",
            remedy="Set source.python_function to package.module.function.",
            code="missing_function",
        )
    function = found_function(
        name,
        project_dir=request.project_dir,
        allowed=request.allowed_functions,
        quiet=request.peek,
    )
    given = _keywords(function, request)
    _check_signature(function, name, given)
    action = {"function": name}
    if request.peek:
        told = (NOT_RUN, f"'{name}' is there, but it is not run: it alone knows its columns")
        return Source(pl.LazyFrame(), action, (told,), empty=True)
    trouble = partial(_trouble, function, name, request)
    try:
        result = function(**given)
    except Exception as error:
        raise trouble(error) from error
    return rows_of(result, name, action, trouble)


def _keywords(function: Callable[..., Any], request: ReadRequest) -> dict[str, Any]:
    source = request.dataflow.source
    options = source.connection.configure.storage_options
    window = request.window
    start, end = dict(request.lower), dict[str, Any]()
    if window is not None:
        start = {} if window.lower is None else {window.column: window.lower}
        end = {} if window.upper is None else {window.column: window.upper}
    given: dict[str, Any] = {
        "engine": FunctionEngine(request.project_dir, storage_options=options),
        "source": source,
        "watermark_start": start or None,
        "watermark_end": end or None,
    }
    if window is not None and _takes(function, "read_range"):
        given["read_range"] = {
            "column": window.column,
            "start": window.lower,
            "end": window.upper,
        }
    return given


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _takes(function: Callable[..., Any], keyword: str) -> bool:
    signature = _signature(function)
    if signature is None:
        return False
    known = signature.parameters.values()
    return any(one.kind is one.VAR_KEYWORD or one.name == keyword for one in known)


def _check_signature(function: Callable[..., Any], name: str, given: dict[str, Any]) -> None:
    place = f"function '{name}'"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ReadError(
            "it is async, and a load does not wait for one",
            place=place,
            remedy="Write a plain function; it may use asyncio.run inside.",
            code="bad_function",
        )
    signature = _signature(function)
    if signature is None:
        return
    try:
        signature.bind(**given)
    except TypeError as error:
        raise ReadError(
            f"it can't be called with the keywords {_KEYWORDS}: {error}",
            place=place,
            remedy="Write def name(*, engine, source, watermark_start, watermark_end, **_).",
            code="bad_function",
        ) from error


def _trouble(
    function: Callable[..., Any], name: str, request: ReadRequest, error: Exception
) -> ReadError:
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = getattr(code, "co_filename", None)
    line = user_line(error, request.project_dir, file)
    return failed(error, f"function '{name}'", line, "it failed")
