"""Reminders about pull requests that wait for a review."""
