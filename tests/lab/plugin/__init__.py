"""Tests of the pytest plugin: each runs pytest on a small project."""
