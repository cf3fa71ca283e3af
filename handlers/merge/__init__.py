"""Merging by command."""
