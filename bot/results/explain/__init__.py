"""Explain why a test has its class, for `nightjar results explain`."""
