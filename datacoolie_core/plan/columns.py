"""Column names on their way to the destination: cleaning, and following one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.column_names import NameMode, clean_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow, Transform

__all__ = [
    "AUDIT_COLUMNS",
    "DATE_FOLDER",
    "FILE_COLUMNS",
    "FILE_PATH",
    "SCD2_COLUMNS",
    "NameMode",
    "blocked_by",
    "clean_name",
    "destination_column",
    "final_name",
]

AUDIT_COLUMNS = ("__created_at", "__updated_at", "__updated_by", "__dataflow_run_id")
"""Written by every load; a column of the source with such a name is replaced."""
FILE_PATH = "__file_path"
FILE_COLUMNS = ("__file_name", FILE_PATH, "__file_modification_time")
"""Written where the source is files."""
SCD2_COLUMNS = ("__valid_from", "__valid_to", "__is_current")
DATE_FOLDER = "__date_folder_partition__"
"""The state key of dated folders: no column, so nothing can follow it."""

_KEEPS_TYPED_VALUES = frozenset({"trim", "empty_to_null"})


def destination_column(dataflow: Dataflow, source_column: str) -> str | None:
    """Return the name in the destination of a source column whose values arrive unchanged.

    None if it is dropped, masked, computed anew, or replaced by a column of ours: then a range
    of the source's values can't be told in the destination.

    Args:
        dataflow: Its transforms and its destination decide.
        source_column: Case does not matter.
    """
    return None if blocked_by(dataflow, source_column) else final_name(dataflow, source_column)


def final_name(dataflow: Dataflow, column: str) -> str:
    """Return the name that a column has after renaming and cleaning, if it arrives at all.

    Args:
        dataflow: Its transforms decide.
        column: As the source or an additional column names it; case does not matter.
    """
    transform = dataflow.transform
    renamed = {old.casefold(): new for old, new in transform.rename_columns.items()}
    name = renamed.get(column.casefold(), column)
    return clean_name(name, transform.configure.column_name_mode)


def blocked_by(dataflow: Dataflow, source_column: str) -> str | None:
    """Return what keeps a source column from arriving unchanged, for a message; None if nothing.

    Args:
        dataflow: Its transforms and its destination decide.
        source_column: Case does not matter.
    """
    transform, name = dataflow.transform, source_column.casefold()
    partitions = [one.column for one in dataflow.destination.partition_columns if one.expression]
    scd2 = SCD2_COLUMNS if dataflow.destination.load_type == "scd2" else ()
    masked = [column for rule in transform.masking_rules for column in rule.columns]
    selected = transform.select_columns
    blocks = {
        "it is no column, but the date in a folder's name": name == DATE_FOLDER,
        "value_rules change it": _changed_by_rules(transform, name),
        "hash_columns write it": _among(
            name, (one.target_column for one in transform.hash_columns)
        ),
        "additional_columns compute it anew": _among(
            name, (one.column for one in transform.additional_columns)
        ),
        "the load writes its own": _among(name, (*AUDIT_COLUMNS, *scd2)),
        "partition_columns compute it anew": _among(name, partitions),
        "masking_rules hide it": _among(name, masked),
        "select_columns leave it out": bool(selected) and not _among(name, selected),
        "drop_columns drop it": _among(name, transform.drop_columns),
    }
    return next((reason for reason, holds in blocks.items() if holds), None)


def _among(name: str, columns: Iterable[str]) -> bool:
    return name in {column.casefold() for column in columns}


def _changed_by_rules(transform: Transform, name: str) -> bool:
    typed = _among(name, (hint.column_name for hint in transform.schema_hints if hint.is_active))
    return any(
        _among(name, rule.columns) and not (typed and rule.operation in _KEEPS_TYPED_VALUES)
        for rule in transform.value_rules
    )
