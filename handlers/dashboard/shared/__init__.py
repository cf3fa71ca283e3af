"""What the pages of several groups use."""
