"""What labs sent, what it means, and what changed: everything between the bucket and the check run."""
