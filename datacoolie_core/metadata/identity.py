"""Names and identities: ids from names, and which place a source or destination is."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Destination, Source

NAMESPACE = UUID("da7ac001-e000-4000-8000-000000000000")


def id_from_name(name: str) -> str:
    """Return the id that the format derives from a name (UUIDv5 in the peer's namespace).

    >>> id_from_name("orders")
    '7172410a-6350-5482-b4a1-c584648f28f7'
    """
    return str(uuid5(NAMESPACE, name))


def table_path(end: Source | Destination) -> str | None:
    """Return ``base_path/schema_name/table`` as written (relative paths stay relative).

    None when the connection has no base path or there is no table.
    """
    base = end.connection.configure.base_path
    if base is None or end.table is None:
        return None
    parts = [part.replace("\\", "/").strip("/") for part in (end.schema_name, end.table) if part]
    return "/".join([base.replace("\\", "/").rstrip("/"), *parts])


def destination_identity(end: Source | Destination) -> str | None:
    """Return the one identity of a physical table: catalog-qualified name, else its path.

    Fan-in, locks, maintenance and lineage all use this function.
    """
    connection = end.connection
    if connection.catalog:
        names = (connection.catalog, connection.database, end.schema_name, end.table)
        return "table:" + ".".join(name for name in names if name)
    path = table_path(end)
    if path is None:
        return None
    scheme, separator, rest = path.rpartition("://")
    clean = "/".join(part for part in rest.split("/") if part not in ("", "."))
    root = "/" if rest.startswith("/") and not separator else ""
    return f"{scheme}{separator}{root}{clean}"
