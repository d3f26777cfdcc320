"""The SQL that expressions are written in: Spark's, with a few additions."""
