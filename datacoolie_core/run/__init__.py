"""Make it happen, from a plan and only a plan."""
