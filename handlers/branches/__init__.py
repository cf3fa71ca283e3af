"""Tracking branches: the nightly branch and the last good branch."""
