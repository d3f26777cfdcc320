"""What would happen: graph, selection, shards, windows, the plan."""
