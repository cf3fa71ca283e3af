"""The comparison of two commits."""
