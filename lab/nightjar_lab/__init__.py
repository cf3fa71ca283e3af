"""What labs run beside their devices. It needs Python's standard library alone, and nothing of the server."""
