"""Results of labs: everything between the bucket and the check run."""
