"""Results of hardware labs: from the bucket into the store, and into check runs."""
