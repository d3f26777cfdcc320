"""Names that Dagster accepts, from names that people gave."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.metadata.models import Dataflow

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9_.-]")
_TAG_LENGTH = 63


def short_hash(text: str) -> str:
    """Return eight hex digits of a text's hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def safe_name(text: str, identity: str) -> str:
    """Return a name for an op, a job or a group.

    >>> safe_name("bronze", "bronze"), safe_name("Größe", "7")
    ('bronze', 'Gr__e_7902699b')

    Args:
        text: The name as given.
        identity: What tells two things apart whose names become one; hashed into the name when
            a character had to be replaced.
    """
    plain = unicodedata.normalize("NFC", text)
    safe = _NOT_IN_NAMES.sub("_", plain)
    return safe if safe == text else f"{safe}_{short_hash(identity)}"


def safe_tag(text: str) -> str:
    """Return a tag's value, or its key; a changed one ends in a hash of the text.

    >>> safe_tag("bronze/flights")
    'bronze_flights-f220ad12'
    """
    safe = _NOT_IN_TAGS.sub("_", text)
    if safe == text and len(safe) <= _TAG_LENGTH:
        return safe
    return f"{safe[: _TAG_LENGTH - 9]}-{short_hash(text)}"


def key_parts(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the parts of a dataflow's asset key: stage and name, the name, or the id."""
    if not dataflow.name:
        return (dataflow.dataflow_id,)
    return (dataflow.stage, dataflow.name) if dataflow.stage else (dataflow.name,)


def source_key_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Return an external source's key; a path gives one part for each of its folders.

    >>> source_key_parts(["landing", "raw//2013/flights.csv"])
    ('landing', 'raw', '2013', 'flights.csv')
    """
    pieces = [piece for part in parts for piece in part.replace("\\", "/").split("/")]
    clean = (
        "".join("_" if unicodedata.category(c) == "Cc" else c for c in piece).strip()
        for piece in pieces
    )
    return tuple(piece for piece in clean if piece not in ("", "."))
