"""Secrets in the open, which must not get into a file that Dagster keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from datacoolie_core.errors import Problem
from datacoolie_core.metadata.coercions import object_or_none
from datacoolie_core.redaction import hidden, looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REMEDY = "Write the secret's key there, and name the field in secrets_ref"


def inline_secrets(source: str, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each secret of a document that is no reference.

    That is text in a ``configure`` under a key that looks like a secret's and that no
    ``secrets_ref`` names, and a password in a URL anywhere. No problem holds the secret.

    Args:
        source: The document's name.
        document: Metadata, as it was fetched.
    """
    for path in _walk(document, "", inside=False, references=frozenset()):
        yield Problem(f"a secret in the open, which would be kept. {_REMEDY}.", source, field=path)


def _walk(value: Any, path: str, *, inside: bool, references: frozenset[str]) -> Iterator[str]:
    if isinstance(value, dict):
        held = cast("dict[Any, Any]", value)
        named = _references(held)
        for key, inner in held.items():
            name = str(key)
            where = f"{path}.{name}" if path else name
            if key == "configure":
                # a workbook or a table of a database holds it as JSON text
                opened = object_or_none(inner)
                given = inner if opened is None else opened
                yield from _walk(given, where, inside=True, references=named)
            elif key != "secrets_ref" and name not in references:
                yield from _inner(name, inner, where, inside=inside)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from _walk(inner, f"{path}[{index}]", inside=inside, references=frozenset())
    elif isinstance(value, str) and hidden(value) != value:
        yield path


def _inner(name: str, inner: Any, where: str, *, inside: bool) -> Iterator[str]:
    if inside and looks_secret(name) and isinstance(inner, str) and inner:
        yield where
    else:
        yield from _walk(inner, where, inside=inside, references=frozenset())


def _references(held: dict[Any, Any]) -> frozenset[str]:
    """Return the fields of configure that hold keys of secrets."""
    sources = object_or_none(held.get("secrets_ref")) or {}
    found: set[str] = set()
    for names in sources.values():
        found |= {names} if isinstance(names, str) else {str(one) for one in names or ()}
    return frozenset(found)
