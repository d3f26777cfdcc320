"""From a dotted path to the function that it names: allowed, found in the project, callable."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from datacoolie_core import storage
from datacoolie_core.engines.names import remedy_for
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.function_trouble import failed, user_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

_LOCK = RLock()
_FIELD = "source.python_function"
_OWN_LIBRARY = frozenset({*sys.stdlib_module_names, "builtins"})


def found_function(
    name: str, *, project_dir: str, allowed: Iterable[str], quiet: bool = False
) -> Callable[..., Any]:
    """Return the function that a dotted path names.

    The project root is looked at first, so that ``functions/sources.py`` of the project is
    ``functions.sources``, whatever else has that name.

    Args:
        name: ``package.module.function``, or ``package.module:function``.
        project_dir: The project root.
        allowed: Packages, modules or functions that may be called; empty allows every one but
            those of Python's own library.
        quiet: Leave no compiled files behind.

    Raises:
        ReadError: It may not be called, is not there, or can't be imported.
    """
    parts = name.replace(":", ".").split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise ReadError(
            f"'{name}' is no dotted path of a function",
            place=_FIELD,
            remedy="Write package.module.function.",
            code="missing_function",
        )
    _check_allowed(".".join(parts), tuple(allowed))
    with _LOCK:
        module, rest = _imported(parts, _root(project_dir), name, quiet=quiet)
    return _attribute(module, rest, name)


def _check_allowed(path: str, allowed: tuple[str, ...]) -> None:
    if not allowed and path.partition(".")[0] not in _OWN_LIBRARY:
        return
    if any(f"{path}.".startswith(f"{package.rstrip('.')}.") for package in allowed):
        return
    raise ReadError(
        f"'{path}' is not among the functions that may be called",
        place=_FIELD,
        remedy="Add its package to allowed_function_prefixes"
        f" (now: {', '.join(allowed) or 'everything but the library of Python'}).",
        code="not_allowed",
    )


def _root(project_dir: str) -> str | None:
    return None if storage.is_remote(project_dir) else storage.resolve(".", project_dir)


def _imported(
    parts: list[str], root: str | None, name: str, *, quiet: bool
) -> tuple[ModuleType, list[str]]:
    """Import the longest part of a path that is a module; return it and what is left."""
    with _ProjectFirst(root, parts, quiet=quiet) as project:
        try:
            project.load_package()
        except Exception as error:
            raise _broken(error, name, root) from error
        for end in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:end])
            try:
                return importlib.import_module(module), parts[end:]
            except ModuleNotFoundError as error:
                if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                    raise _broken(error, name, root) from error
            except Exception as error:
                raise _broken(error, name, root) from error
    raise ReadError(
        f"there is no module '{parts[0]}' for '{name}'",
        place=_FIELD,
        remedy=f"Put {parts[0]}/ into the project root ({root}), or install its package.",
        code="missing_function",
    )


def _broken(error: Exception, name: str, root: str | None) -> ReadError:
    what = "its module can't be imported"
    return failed(error, f"function '{name}'", user_line(error, root), what, code="bad_function")


def _attribute(module: ModuleType, rest: list[str], name: str) -> Callable[..., Any]:
    value: Any = module
    for part in rest:
        if not hasattr(value, part):
            there = [one for one in vars(module) if callable(getattr(module, one))]
            raise ReadError(
                f"'{module.__name__}' has no function '{'.'.join(rest)}'",
                place=f"{_FIELD} '{name}'",
                remedy=remedy_for(part, [one for one in there if not one.startswith("_")]),
                code="missing_function",
            )
        value = getattr(value, part)
    if not callable(value):
        raise ReadError(
            f"'{name}' is a {type(value).__name__}, not a function",
            place=_FIELD,
            remedy="Name a function that returns rows.",
            code="bad_function",
        )
    return value


class _ProjectFirst:
    """Puts the project root in front of all other places while a module is imported.

    Afterwards it is the last one: what the function imports when it runs is found, too.
    """

    def __init__(self, root: str | None, parts: list[str], *, quiet: bool) -> None:
        self._root, self._parts, self._quiet = root, parts, quiet

    def __enter__(self) -> Self:
        self._wrote = sys.dont_write_bytecode
        sys.dont_write_bytecode = self._wrote or self._quiet
        if self._root is not None:
            importlib.invalidate_caches()
            sys.path.insert(0, self._root)
        return self

    def load_package(self) -> None:
        """Import the project's own package of this name, if it has one that is not there yet."""
        if self._root is not None:
            _load_own(self._parts, self._root)

    def __exit__(self, *_: object) -> None:
        sys.dont_write_bytecode = self._wrote
        if self._root is None:
            return
        sys.path.remove(self._root)
        if self._root not in sys.path:
            sys.path.append(self._root)


def _load_own(parts: list[str], root: str) -> None:
    """Import a package from the project alone, in place of another project's of the same name.

    Python itself would take an installed package, or one of another project of this process,
    where the project's folder has no ``__init__.py``.
    """
    package = parts[0]
    spec = PathFinder.find_spec(package, [root])
    if spec is None:
        return
    folders = spec.submodule_search_locations
    if spec.loader is None and not PathFinder.find_spec(".".join(parts[:2]), folders):
        return  # a folder that happens to have the package's name
    there = [one for one in sys.modules if f"{one}.".startswith(f"{package}.")]
    if package in there and all(_is_of(sys.modules[one], root) for one in there):
        return
    for name in there:
        del sys.modules[name]
    module = module_from_spec(spec)
    sys.modules[package] = module
    if spec.loader is None:
        module.__path__ = list(folders or ())
        return
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(package, None)
        raise


def _is_of(module: ModuleType, root: str) -> bool:
    """Whether a module is a project's; a package without ``__init__.py`` follows ``sys.path``."""
    folders = [str(one) for one in getattr(module, "__path__", ())]
    places = folders or [str(getattr(module, "__file__", None) or "")]
    base = Path(root).resolve()
    return all(place and Path(place).resolve().is_relative_to(base) for place in places)
