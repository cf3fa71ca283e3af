"""What is said about results on a commit."""
