"""The list of searches for a culprit."""
