"""The nightly branch: the commit that all labs test."""
