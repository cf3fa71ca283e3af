"""Tests of device jobs."""
