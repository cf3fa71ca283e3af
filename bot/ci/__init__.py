"""The CIs that a commit's results come from, and running them again."""
