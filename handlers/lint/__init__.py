"""Advice about a pull request's title and description."""
