"""News of failures on watched branches."""
