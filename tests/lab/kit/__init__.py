"""Tests of `nightjar-lab`: real processes, the real bot with the sandbox GitHub, the real S3 protocol."""
