"""Readers of what benchmark tools write: each benchmark is a test that passed, with its measurements."""
