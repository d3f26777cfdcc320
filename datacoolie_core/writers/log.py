"""Read single commits of a table's log, and say what each of them did."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from datacoolie_core.errors import MissingPathError
from datacoolie_core.writers.objects import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from datacoolie_core.writers.tables import Place


@dataclass(frozen=True)
class LogEntry:
    """One commit.

    Attributes:
        version: The table's version that it made.
        info: The ``commitInfo`` action.
        transactions: App id → version.
        takes_rows: It took rows out or rewrote them with other content (appends, OPTIMIZE and
            metadata changes do not).
        adds_rows: It added rows.
        table_id: Delta's table id, where the commit says it.
    """

    version: int
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    transactions: Mapping[str, int] = field(default_factory=dict[str, int])
    takes_rows: bool = False
    adds_rows: bool = False
    table_id: str | None = None

    @property
    def ours(self) -> Mapping[str, Any]:
        """Our own object in the commit info, empty for other tools' commits."""
        return _object(self.info.get("datacoolie"))

    @property
    def operation(self) -> str:
        """What the commit was, for people: ours by load type, others as the history has it."""
        if self.ours:
            return f"{self.ours.get('load_type', 'load')} of '{self.ours.get('dataflow_id')}'"
        name = str(self.info.get("operation", "UNKNOWN"))
        mode = self.parameters.get("mode")
        return f"{name} ({mode})" if name == "WRITE" and mode else name

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The operation's parameters."""
        return _object(self.info.get("operationParameters"))


def _object(found: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def read_entry(place: Place, version: int) -> LogEntry | None:
    """Return one commit, None if the log does not hold it (not yet, or not any more)."""
    name = f"_delta_log/{version:020}.json"
    try:
        data = read_file(place, name)
    except MissingPathError:
        return None
    return _parse(version, data)


def entries_after(place: Place, version: int) -> Iterator[LogEntry]:
    """Yield the commits above a version, oldest first, up to the newest."""
    while (entry := read_entry(place, version := version + 1)) is not None:
        yield entry


def _parse(version: int, data: bytes) -> LogEntry:
    info: Mapping[str, Any] = {}
    transactions: dict[str, int] = {}
    takes = adds = False
    table_id: str | None = None
    for line in data.splitlines():
        if not line.strip():
            continue
        action: dict[str, Any] = json.loads(line)
        for kind, body in action.items():
            if kind == "commitInfo":
                info = body
            elif kind == "txn":
                transactions[body["appId"]] = body["version"]
            elif kind == "remove":
                takes |= bool(body.get("dataChange", True))
            elif kind == "add":
                adds |= bool(body.get("dataChange", True))
            elif kind == "metaData":
                table_id = body.get("id")
    return LogEntry(version, info, transactions, takes, adds, table_id)
