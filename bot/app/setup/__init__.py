"""Set-up in a browser: make the App on GitHub, store its secrets, write app.yaml, and wait for the first delivery."""
