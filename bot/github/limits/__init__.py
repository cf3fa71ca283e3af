"""Keep to GitHub's rate limits: what may be sent when, and who goes first."""
