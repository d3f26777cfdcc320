"""Lazy frame → destination, one commit a load."""
