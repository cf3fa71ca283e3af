"""What changed between two commits."""
