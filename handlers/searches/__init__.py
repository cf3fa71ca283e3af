"""Searches for the commit with which tests began to fail on devices: docs/decisions/noisy-search.md."""
