"""What happens to the rows between source and destination: lazy frame in, lazy frame out."""
