"""Read JSON, whole documents and JSON lines, as a stream with limits."""
