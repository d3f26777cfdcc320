"""Names that plug-ins may add: a reader for a format, a transform for a slot.

A package adds one in its code, or with an entry point of the group ``datacoolie.readers`` or
``datacoolie.transforms``; a name that is added hides what the product itself has under it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from threading import RLock
from typing import Any


class Registry:
    """What is known under which name, in one group of entry points.

    Args:
        group: The entry point group; it is read when a name is first looked up.

    >>> colours = Registry("example.colours")
    >>> colours.register("sky", "blue")
    >>> colours.find("sky"), colours.find("sea")
    ('blue', None)
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self._known: dict[str, Any] = {}
        self._loaded = False
        self._lock = RLock()

    def register(self, name: str, value: Any) -> None:
        """Make a value known; it replaces an older one of the same name."""
        with self._lock:
            self._known[name] = value

    def unregister(self, name: str) -> None:
        """Forget a name; one that is not known is fine."""
        with self._lock:
            self._known.pop(name, None)

    def find(self, name: str) -> Any | None:
        """Return what is known under a name, None if nothing is."""
        return self.all().get(name)

    def all(self) -> dict[str, Any]:
        """Return a copy of everything that is known, name → value."""
        with self._lock:
            if not self._loaded:
                self._loaded = True
                for entry in entry_points(group=self.group):
                    self._known.setdefault(entry.name, entry.load())
            return dict(self._known)


readers = Registry("datacoolie.readers")
"""Format → function from a ``ReadRequest`` to a ``Source`` (``readers/source.py``)."""

transforms = Registry("datacoolie.transforms")
"""Name → ``Slot`` (``transforms/slots.py``); slots 40 to 50 are free for plug-ins."""
