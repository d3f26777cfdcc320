"""Keys of ``configure`` that nothing knows: kept, with a word where one looks misspelt."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.base import OpenModel, keys_of
from datacoolie_core.metadata.options import home_of
from datacoolie_core.metadata.problems import SYNONYMS, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def check_open_keys(
    configure: OpenModel, field: str, *, known: Iterable[str] = (), own_keys: bool = True
) -> Iterator[Finding]:
    """Yield a warning for each unknown key that is close to a known one.

    Args:
        configure: An open mapping of the metadata.
        field: Its path.
        known: Keys that belong there, besides those of the model.
        own_keys: Whether one of our own keys here is probably in the wrong place.
    """
    extra = configure.model_extra
    if not extra:
        return
    names = tuple(keys_of(type(configure))) + tuple(known)
    for key in extra:
        if key == "datacoolie":
            message = "our own keys belong to configure of a dataflow, its source or destination"
            yield Finding(f"{field}.{key}", message)
        elif key not in names:
            home = home_of(key) if own_keys else None
            yield from _misspelt(key, field, names, home)


def _misspelt(key: str, field: str, names: tuple[str, ...], home: str | None) -> Iterator[Finding]:
    if home is not None:
        message = f"'{key}' has no effect here; it belongs at {home}"
        yield Finding(f"{field}.{key}", message, severity="warning")
        return
    meant = _meant(key, names)
    if meant is not None:
        message = f"unknown key '{key}' is passed on as it is"
        yield Finding(f"{field}.{key}", message, meant, severity="warning")


@lru_cache(maxsize=1024)
def _meant(key: str, names: tuple[str, ...]) -> str | None:
    other = SYNONYMS.get(key.lower(), "").rpartition(".")[2]
    return other if other in names else nearest(key, names, cutoff=80)
