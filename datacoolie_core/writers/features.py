"""What a table's features forbid: some need the library's own writer, some nobody here can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.tables import field_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from datacoolie_core.writers.tables import LiveFile


def refuse(table: DeltaTable, *, removing: bool) -> None:
    """Raise if the table has a feature that nothing here can write.

    Args:
        table: The destination.
        removing: Whether the load takes rows out or changes them.

    Raises:
        WriteError: Names the feature.
    """
    config = table.metadata().configuration
    metadata = field_metadata(table)
    reasons = {
        "column mapping": config.get("delta.columnMapping.mode", "none") != "none",
        "row tracking": config.get("delta.enableRowTracking") == "true",
        "identity columns": any("delta.identity.start" in m for m in metadata.values()),
    }
    for feature, there in reasons.items():
        if there:
            raise WriteError(
                f"the table uses {feature}, which can't be written from here",
                remedy="Switch the feature off, or load into another table.",
                code="unsupported_table_feature",
            )
    if removing and config.get("delta.appendOnly") == "true":
        raise WriteError(
            "the table is append only (delta.appendOnly), and this load changes or removes rows",
            remedy="Use load_type: append, or take delta.appendOnly off the table.",
            code="append_only_table",
        )


def refuse_paths(files: Sequence[LiveFile]) -> None:
    """Raise if a file can't be taken out of the table.

    Args:
        files: Those that the load may remove.

    Raises:
        WriteError: Names one of them.
    """
    odd = [file.path for file in files if not file.removable]
    if odd:
        raise WriteError(
            f"{len(odd)} files have paths that another engine spelled in its own way, such as"
            f" '{odd[0]}', so that they can't be replaced from here",
            remedy="Rewrite them with the engine that wrote them (REORG or OPTIMIZE), or load into"
            " another table.",
            code="unsupported_path",
        )


def needs_library(table: DeltaTable, *, removing: bool) -> bool:
    """Return whether rows must go through delta-rs's own writer, which knows the feature.

    Args:
        table: The destination.
        removing: Whether the load takes rows out or changes them.
    """
    config = table.metadata().configuration
    if any(key.startswith("delta.constraints.") for key in config):
        return True
    special = ("delta.generationExpression", "delta.invariants")
    if any(key in m for m in field_metadata(table).values() for key in special):
        return True
    if not removing:
        return False
    features = table.protocol().writer_features or []
    return config.get("delta.enableChangeDataFeed") == "true" or "deletionVectors" in features
