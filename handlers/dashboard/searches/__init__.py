"""Searches for a culprit: the list of them, and the page of each."""
