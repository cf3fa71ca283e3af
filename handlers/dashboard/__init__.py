"""The public dashboard: what the labs found, as pages for people."""
