"""Which commit a failure began with: a noisy search over the commits of a range. No I/O."""
