"""`@ci revert`, and slow tests for what follows from it."""
