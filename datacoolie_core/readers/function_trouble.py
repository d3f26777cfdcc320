"""What goes wrong in a source function, told with the user's own file and line."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.errors import LoadError, ReadError

if TYPE_CHECKING:
    from types import TracebackType

_FINAL = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    NameError,
    ImportError,
    SyntaxError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
    FileNotFoundError,
    pl.exceptions.PolarsError,
)
"""The same code and data give these again; anything else may be the network's or a server's."""
_INSTALLED = ("site-packages", "dist-packages")


def user_line(error: BaseException, root: str | None, file: str | None = None) -> str | None:
    """Return file and line of the user's code that an error came through last.

    Args:
        error: As caught.
        root: The project root; files below it are the user's.
        file: The file of the function itself, which is too.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return _shown(error.filename, error.lineno, root)
    for frame in reversed(traceback.extract_tb(_traceback(error))):
        if frame.filename == file or _within(frame.filename, root):
            return _shown(frame.filename, frame.lineno, root)
    return None


def _traceback(error: BaseException) -> TracebackType | None:
    return error.__traceback__


def _within(file: str, root: str | None) -> bool:
    if root is None or any(part in file for part in _INSTALLED):
        return False
    return Path(file).is_relative_to(root)


def _shown(file: str, line: int | None, root: str | None) -> str:
    path = Path(file)
    named = path.relative_to(root) if root is not None and path.is_relative_to(root) else path
    return f"{named}:{line or 1}"


def failed(
    error: Exception, function: str, line: str | None, what: str, *, code: str = "function_failed"
) -> ReadError:
    """Return the error of a function that raised one.

    Args:
        error: What it raised.
        function: How messages name it.
        line: File and line of the user's code.
        what: What did not work.
        code: For scripts.
    """
    text = str(error).strip().splitlines()
    detail = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    again = error.retryable if isinstance(error, LoadError) else not isinstance(error, _FINAL)
    return ReadError(
        f"{what}: {detail}",
        place=function if line is None else f"{function}, {line}",
        remedy="Correct the function, or what it reads.",
        code=code,
        retryable=again,
    )
