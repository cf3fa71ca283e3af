"""Decide whether CI has to rebuild Docker images."""
