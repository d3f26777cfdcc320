"""What must not be shown, taken out of what others say: errors of databases, stores and drivers."""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, quote_plus, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HIDDEN = "***"
_LOOKS_SECRET = re.compile(
    r"pass(word|wd)?$|secret|token$|(api|account|access)_?key|credential|private|sas$",
    re.IGNORECASE,
)
_SHORTEST = 3
"""A shorter text is hidden nowhere: taking it out would garble every message."""


class Redaction:
    """The secrets that a run has met, and texts without them.

    Safe to use from any thread.

    >>> known = Redaction()
    >>> known.learn("S3cr3t!pa@ss")
    >>> known.clean("no route to postgresql://etl:S3cr3t%21pa%40ss@db/crm")
    'no route to postgresql://etl:***@db/crm'
    """

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return "Redaction(***)"

    def learn(self, secret: str) -> None:
        """Remember a secret, in every form that a URL or a message may give it."""
        plain = {secret, unquote(secret), secret.strip()}
        forms = {form for one in plain for form in (one, quote(one, safe=""), quote_plus(one))}
        forms |= {repr(one)[1:-1] for one in plain}
        wanted = {form for form in forms if len(form) >= _SHORTEST}
        with self._lock:
            if wanted <= self._texts:
                return
            self._texts |= wanted
            longest_first = sorted(self._texts, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def learn_from(self, configure: Mapping[str, Any]) -> None:
        """Remember what a connection's configure holds in the open: passwords and the like.

        Args:
            configure: Key → value, nested; also URLs that carry a password.
        """
        for text in _secrets_in(configure):
            self.learn(text)

    def clean(self, text: str) -> str:
        """Return a text with ``***`` in the place of every secret."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)


def looks_secret(key: str) -> bool:
    """Say whether a key's value should not be shown.

    >>> looks_secret("client_secret"), looks_secret("password"), looks_secret("path")
    (True, True, False)
    """
    return _LOOKS_SECRET.search(key) is not None


def hidden(value: Any) -> Any:
    """Return plain data with ``***`` for the values of keys that look like a secret's.

    >>> hidden({"user": "etl", "password": "x"})
    {'user': 'etl', 'password': '***'}
    """
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {
            key: HIDDEN if looks_secret(str(key)) and inner else hidden(inner)
            for key, inner in pairs
        }
    if isinstance(value, list):
        return [hidden(inner) for inner in cast("list[Any]", value)]
    return _without_password(value) if isinstance(value, str) else value


def _secrets_in(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in cast("dict[Any, Any]", value).items():
            yield from _secrets_in(inner, str(name))
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _secrets_in(inner, key)
    elif isinstance(value, str) and value:
        if looks_secret(key):
            yield value
        elif password := _password_of(value):
            yield password


def _password_of(text: str) -> str | None:
    if "://" not in text:
        return None
    try:
        return urlsplit(text).password
    except ValueError:
        return None


def _without_password(text: str) -> str:
    password = _password_of(text)
    return text.replace(f":{password}@", f":{HIDDEN}@") if password else text
