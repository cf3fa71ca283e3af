"""Readers of the JSON of pytest's plugins, and the phases of its tests."""
