"""Rules that span the fields of a connection or dataflow."""

from __future__ import annotations

from collections.abc import Iterator

from datacoolie_core.metadata.models import Connection, Dataflow
from datacoolie_core.metadata.problems import Finding


def check_connection(connection: Connection) -> Iterator[Finding]:
    """Yield what is wrong within one connection."""
    yield from ()


def check_dataflow(flow: Dataflow) -> Iterator[Finding]:
    """Yield what is wrong within one dataflow and with its connections."""
    yield from ()
