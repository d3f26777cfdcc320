"""SQL expressions as expressions of the engine, built from their trees.

A tree is walked once (`translate`). Every node becomes a `Value`: an engine expression whose type is
known. What a function gives is in `text`, `patterns`, `times`, … each with a table ``FUNCTIONS``.
"""
