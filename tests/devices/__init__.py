"""Labs, pull requests and faults of a month, simulated by the second: what becomes of tests on devices."""
