"""What CI is told when it asks what to do."""
