"""What should happen: frozen models, the providers that load them, and their checks."""
