"""What labs install: commands for their machines, and a pytest plugin. It needs nothing of the server."""
