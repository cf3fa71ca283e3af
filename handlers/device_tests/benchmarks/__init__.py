"""Benchmarks of a pull request: head and base run in turn on one device."""
