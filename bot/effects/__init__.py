"""Effects: all writes to GitHub, to a CI, and to our own records. Each effect is idempotent."""
