"""The resource that says how loads go: the same for every asset and job of a code location."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import dagster as dg
from pydantic import Field

if TYPE_CHECKING:
    from datacoolie_core.run.config import DataCoolieRunConfig


class DataCoolieResource(dg.ConfigurableResource["DataCoolieResource"]):
    """How loads go; never what is loaded.

    Retries belong to one side: the core tries a load again by ``retry_count``. When Dagster
    itself repeats a step or a run (a ``RetryPolicy``, run retries), the core tries once, so that
    the two never multiply.
    """

    max_workers: int = Field(
        default=8, description="Dataflows that a group step or an incremental job loads at once."
    )
    retry_count: int = Field(default=0, description="Attempts of the core after the first.")
    retry_delay: float = Field(
        default=5.0, description="Seconds before the second attempt; doubles, capped at 60."
    )
    stop_on_error: bool = Field(
        default=False,
        description="After the first failure, a group step or an incremental job starts no more.",
    )
    on_upstream_failure: Literal["continue", "block"] = Field(
        default="continue",
        description="Load against the last good version of what failed, or skip.",
    )
    allowed_function_prefixes: list[str] = Field(
        default=[],
        description="Packages that metadata may call functions of; empty allows every one.",
    )
    state: str | None = Field(
        default=None,
        description="Folder of the state; by default the state is in the assets' metadata.",
    )
    log_path: str | None = Field(
        default=None, description="Folder of the core's run records; by default there are none."
    )

    def run_config(self, *, retries: bool) -> DataCoolieRunConfig:
        """Return the settings for the core.

        Args:
            retries: Whether the core may try again by itself.
        """
        from datacoolie_core.run.config import DataCoolieRunConfig

        return DataCoolieRunConfig(
            max_workers=self.max_workers,
            stop_on_error=self.stop_on_error,
            retry_count=self.retry_count,
            retry_delay=self.retry_delay,
            on_upstream_failure=self.on_upstream_failure,
            retries=retries,
            allowed_function_prefixes=tuple(self.allowed_function_prefixes),
        )
