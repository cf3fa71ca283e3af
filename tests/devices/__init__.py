"""A month of labs, pull requests and faults, simulated by the second: what happens to device tests."""
