"""What differs between polars and another engine: casts and SQL expressions."""
