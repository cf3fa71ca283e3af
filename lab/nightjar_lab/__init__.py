"""The kit that labs install: commands for their machines, and a pytest plugin. It does not need the server's code."""
