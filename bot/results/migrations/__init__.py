"""What brings the tables of results from each release to the next."""
