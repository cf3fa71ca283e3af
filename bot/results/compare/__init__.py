"""Compare runs: baselines, renamed tests, flakiness, and the health of suites."""
