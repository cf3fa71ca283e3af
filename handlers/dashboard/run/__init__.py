"""The page of a run, its log and its files."""
