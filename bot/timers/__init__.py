"""Timers of repositories."""
