"""What tells a source's new files from those that are loaded: their folder's date, or a memory of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.plan.columns import DATE_FOLDER

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def dated(dataflow: Dataflow) -> str | None:
    """Return the pattern of the source's dated folders, None without any."""
    connection = dataflow.source.connection
    is_file = connection.connection_type == "file"
    return connection.configure.date_folder_partitions or None if is_file else None


def keeps_registry(dataflow: Dataflow) -> bool:
    """Say whether each file of the source is remembered."""
    return dataflow.source.configure.datacoolie.file_registry


def state_columns(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the names that a dataflow's watermark can have: its columns, and its dated folder."""
    folder = () if dated(dataflow) is None else (DATE_FOLDER,)
    return (*dataflow.source.watermark_columns, *folder)


def tracks_files(dataflow: Dataflow) -> bool:
    """Say whether files, and not rows, are what a run leaves out as loaded.

    The newest dated folder may still get files, so that its files are remembered; where rows have a
    watermark of their own, that one tells.
    """
    by_folder = dated(dataflow) is not None and not dataflow.source.watermark_columns
    return keeps_registry(dataflow) or by_folder
