"""The page of a test."""
