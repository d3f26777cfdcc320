"""Logs of runs, as JSON lines: one sink for dataflows and jobs, one for everything that happens."""
