"""One module a workload: its rows, its variants, and the ratio that we promise."""
