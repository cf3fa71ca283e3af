"""List and rerun the runs of all CIs on a commit."""
