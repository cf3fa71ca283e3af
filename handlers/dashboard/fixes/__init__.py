"""The page about the time to fix failures."""
