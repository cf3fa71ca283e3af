"""Failures of targets, and the messages that reported them."""
