"""The database of results."""
