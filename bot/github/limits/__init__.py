"""Keep to GitHub's rate limits: when a request may be sent, and which requests go first."""
