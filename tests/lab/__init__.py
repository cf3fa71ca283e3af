"""Tests of what labs run next to their devices."""
