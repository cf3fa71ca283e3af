"""Tests of what labs run beside their devices."""
