"""Lazy frame → lazy frame, one slot a file."""
