"""Ingest runs: admit them, read their files, and store their results."""
