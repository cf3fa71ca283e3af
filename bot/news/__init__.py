"""Post news to chat channels and in issues."""
