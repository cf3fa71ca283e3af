"""SQL and text that both databases understand."""
