"""Benchmarks: our loads beside hand-written scripts on the same rows, in one run."""
