"""Source → lazy frame, with what the run must know of the rows that passed."""
