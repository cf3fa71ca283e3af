"""Measure the whole bot: the cost of a delivery, and the time until its answer. README.md has the figures."""
