"""Tests of the backend suite, with toy flows."""
