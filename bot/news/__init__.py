"""Messages to channels and issues."""
