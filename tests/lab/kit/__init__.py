"""Tests of `nightjar-lab`: real processes, the real bot with the sandbox GitHub, a real S3 protocol."""
