"""Tests of jobs for devices."""
