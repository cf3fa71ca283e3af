"""Results of the nightly branch by commit."""
