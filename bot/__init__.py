"""Carries events from GitHub to handlers, and their effects back; it depends on no feature."""
