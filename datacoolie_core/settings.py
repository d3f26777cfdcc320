"""How to run, never what to run: environment variables over ``datacoolie.toml`` over defaults."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core import storage
from datacoolie_core.errors import SettingsError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FILE = "datacoolie.toml"
PREFIX = "DATACOOLIE_"
_MISSPELT = 93


@dataclass(frozen=True)
class Settings:
    """The settings of a project; a flag of the command line wins over each.

    Attributes:
        project_dir: The project root, absolute or a URI; relative paths start there.
        metadata: Metadata files and folders.
        state: The folder of the state.
        log_path: The folder of the logs; None writes none.
        max_workers: Dataflows that run at once.
        retry_count: Attempts after the first.
        retry_delay: Seconds before the second attempt; it doubles from there.
        sql_path: The roots of SQL files.
        allowed_function_prefixes: Packages, modules and functions that metadata may call; empty
            allows every importable one.
        env: The environment whose overlays are laid over the metadata.
    """

    project_dir: str
    metadata: tuple[str, ...] = ()
    state: str | None = None
    log_path: str | None = None
    max_workers: int = 8
    retry_count: int = 0
    retry_delay: float = 5.0
    sql_path: tuple[str, ...] = ()
    allowed_function_prefixes: tuple[str, ...] = ()
    env: str | None = None


def find_project_dir(project_dir: str | None = None) -> str:
    """Return the project root: what is given, else ``DATACOOLIE_PROJECT_DIR``, else a folder.

    The folder is that of the nearest ``datacoolie.toml`` upwards, else the working directory.

    Args:
        project_dir: The root that a flag or an argument names.
    """
    named = project_dir or os.environ.get(f"{PREFIX}PROJECT_DIR")
    if named:
        return storage.resolve(named, Path.cwd())
    file = _find_file(Path.cwd())
    if file is None:
        return str(Path.cwd())
    named = _read_file(file).get("project_dir")
    return storage.resolve(_as_text(named), file.parent) if named else str(file.parent)


def project_near(paths: Sequence[str]) -> str | None:
    """Return the project that metadata paths lie in, None if anything else names the root.

    So a command works on another folder's project without a second flag.

    Args:
        paths: As given on a command line; the first that is there counts.
    """
    if os.environ.get(f"{PREFIX}PROJECT_DIR") or _find_file(Path.cwd()):
        return None
    there = (Path(one) for one in paths if not storage.is_remote(one) and Path(one).exists())
    file = next((found for one in there if (found := _find_file(one))), None)
    return str(file.parent) if file else None


def default_state(environment: str | None = None) -> str:
    """Return where the state is if nobody says it: each environment has one of its own.

    >>> default_state(), default_state("dev")
    ('.datacoolie/state', '.datacoolie/dev/state')
    """
    return f".datacoolie/{environment}/state" if environment else ".datacoolie/state"


def load_settings(start_dir: str | None = None) -> Settings:
    """Return the settings that hold in a folder.

    Args:
        start_dir: The project root that a flag names; else it is found as by `find_project_dir`.

    Raises:
        SettingsError: A setting is unknown, or has a value that it can't have.
    """
    root = find_project_dir(start_dir)
    file = None if storage.is_remote(root) else _find_file(Path(root))
    if file is None:
        file = _find_file(Path.cwd()) if start_dir is None else None
    values = _parsed(_read_file(file), str(file)) if file else {}
    values |= _parsed(_environment(), "the environment", PREFIX)
    values.pop("project_dir", None)
    return Settings(project_dir=root, **values)


def _find_file(folder: Path) -> Path | None:
    folder = folder.absolute()
    return next(
        (place / FILE for place in (folder, *folder.parents) if (place / FILE).is_file()), None
    )


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"can't be read: {error}", place=str(file)) from error


def _environment() -> dict[str, Any]:
    names = {f"{PREFIX}{item.name.upper()}": item.name for item in fields(Settings)}
    found: dict[str, Any] = {}
    for variable, value in os.environ.items():
        if variable in names and value.strip():
            found[names[variable]] = value
        elif variable.startswith(PREFIX) and variable not in names:
            _refuse_misspelt(variable)
    return found


def _refuse_misspelt(variable: str) -> None:
    # secrets and other tools share the prefix, so only what is very like a setting is refused
    meant = nearest(variable.removeprefix(PREFIX), _PARSERS, cutoff=_MISSPELT)
    if meant is not None:
        raise SettingsError(
            f"unknown setting '{variable}'",
            place="the environment",
            remedy=f"Did you mean '{PREFIX}{meant.upper()}'?",
        )


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text")  # noqa: TRY004 - the value of a setting, not a call
    return value


def _as_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list):
        raise ValueError("a list of text, or text with commas")  # noqa: TRY004 - as above
    return tuple(_as_text(item) for item in cast("list[Any]", value))


def _as_number(least: int, kind: type[int] | type[float]) -> Callable[[Any], Any]:
    words = "a whole number" if kind is int else "a number"

    def parse(value: Any) -> Any:
        wrong = ValueError(f"{words} of at least {least}")
        allowed = (str, int) if kind is int else (str, int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise wrong
        try:
            number = kind(value)
        except ValueError:
            raise wrong from None
        if not number >= least:
            raise wrong
        return number

    return parse


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "project_dir": _as_text,
    "metadata": _as_list,
    "state": _as_text,
    "log_path": _as_text,
    "max_workers": _as_number(1, int),
    "retry_count": _as_number(0, int),
    "retry_delay": _as_number(0, float),
    "sql_path": _as_list,
    "allowed_function_prefixes": _as_list,
    "env": _as_text,
}


def _parsed(values: Mapping[str, Any], place: str, prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in values.items():
        shown = f"{prefix}{key.upper()}" if prefix else key
        if key not in _PARSERS:
            meant = nearest(key, _PARSERS)
            remedy = f"Did you mean '{meant}'?" if meant else f"Known: {', '.join(_PARSERS)}."
            raise SettingsError(f"unknown setting '{shown}'", place=place, remedy=remedy)
        try:
            result[key] = _PARSERS[key](value)
        except ValueError as error:
            raise SettingsError(f"{shown} must be {error}, not {value!r}", place=place) from None
    return result
