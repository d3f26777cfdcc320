"""Where a driver runs: the platform with its secrets and files, and the engine on it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class LocalPlatform:
    """This machine: secrets are environment variables, files whatever fsspec reaches."""

    name: str = "local"

    def get_secret(self, source: str, key: str) -> str | None:
        """Return a secret, None if there is none: the environment variable source + key."""
        return os.environ.get(f"{source}{key}")


@dataclass(frozen=True, eq=False)
class PolarsEngine:
    """The one engine that there is.

    Args:
        platform: Where it runs; a driver must not be given another one.
    """

    platform: LocalPlatform | None = field(default=None)
    name: str = "polars"
