"""The names that columns get on their way to the destination."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

NameMode = Literal["lower", "snake", "none"]

_WORDS = (
    re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])"),  # orderId -> order Id
    re.compile(r"(?<=[A-Z])(?=[A-Z][a-z])"),  # HTTPServer -> HTTP Server
)


def clean_name(name: str, mode: NameMode = "lower") -> str:
    """Return the name that a column has in the destination.

    Letters, marks and digits of every script stay; each run of other characters becomes one
    ``_``, none at the ends; a name that starts with a digit gets a ``_`` in front. Names that
    start with ``_`` are left alone. Cleaning twice changes nothing.

    >>> clean_name("Order ID"), clean_name("2nd Größe (cm)"), clean_name("__updated_at")
    ('order_id', '_2nd_größe_cm', '__updated_at')
    >>> clean_name("HTTPStatusCode", "snake")
    'http_status_code'

    Args:
        name: As the transforms left it.
        mode: ``lower``; ``snake``, which also parts words at capitals; or ``none``.
    """
    if mode == "none" or name.startswith("_"):
        return name
    text = unicodedata.normalize("NFC", name)
    if mode == "snake":
        for boundary in _WORDS:
            text = boundary.sub("_", text)
    kept = "".join(one if unicodedata.category(one)[0] in "LMN" else " " for one in text.lower())
    cleaned = unicodedata.normalize("NFC", "_".join(kept.replace("_", " ").split()))
    return f"_{cleaned}" if not cleaned or unicodedata.category(cleaned[0])[0] == "N" else cleaned
