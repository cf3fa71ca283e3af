"""What the tests of CI say: which were skipped, and how long they took."""
