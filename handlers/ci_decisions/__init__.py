"""Answers for a CI that asks what it should run."""
