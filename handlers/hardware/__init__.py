"""Results of hardware labs: ingested, compared, reported, listed."""
