"""What goes: contents behind their retention, runs with a secret in them, old runs."""
