"""Report on the tests that CI ran: which were skipped, and how long they took."""
