"""Readers of TAP and KTAP."""
