"""The tables of results, and the smallest reads and writes of their rows."""
