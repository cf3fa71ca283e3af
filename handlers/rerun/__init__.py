"""Running failed CI again."""
