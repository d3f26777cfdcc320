"""The command line; the only place that prints."""

from __future__ import annotations

from datacoolie_core.cli.main import main

__all__ = ["main"]
