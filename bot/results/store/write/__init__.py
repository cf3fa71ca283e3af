"""What the store updates when a run arrives: columns, the series of its suite, and pending check runs."""
