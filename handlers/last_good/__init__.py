"""The last good branch: the newest commit on which everything required is green."""
