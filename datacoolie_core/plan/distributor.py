"""Which job of several runs a dataflow: the same answer in every job, without talking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core.errors import SettingsError
from datacoolie_core.plan.selection import shard_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow


@dataclass(frozen=True)
class JobDistributor:
    """Shares dataflows among jobs: whole groups by their number, others by a hash of their id.

    Args:
        job_num: How many jobs there are.
        job_index: Which of them this is, 0 to ``job_num - 1``.

    Raises:
        SettingsError: For an index out of range.
    """

    job_num: int = 1
    job_index: int = 0

    def __post_init__(self) -> None:
        if self.job_num < 1 or not 0 <= self.job_index < self.job_num:
            raise SettingsError(
                f"job_index is {self.job_index} of {self.job_num} jobs",
                remedy="Give 0 to job_num - 1, and 1 job or more.",
            )

    def job_of(self, dataflow: Dataflow) -> int:
        """Return the index of the job that runs a dataflow."""
        return shard_of(dataflow.dataflow_id, dataflow.group_number, self.job_num)

    def owns(self, dataflow: Dataflow) -> bool:
        """Return whether this job runs a dataflow."""
        return self.job_of(dataflow) == self.job_index

    def distribute(self, dataflows: Iterable[Dataflow]) -> list[Dataflow]:
        """Return this job's dataflows, in their order."""
        return [one for one in dataflows if self.owns(one)]
