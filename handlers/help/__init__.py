"""`@ci help`."""
