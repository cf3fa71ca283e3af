"""Labs, pull requests and faults of a month, simulated by the second: what happens to device tests."""
