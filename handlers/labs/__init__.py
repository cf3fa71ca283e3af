"""The API for labs: they claim work for their devices, and report its progress."""
