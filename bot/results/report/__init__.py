"""What is said of results on a commit."""
