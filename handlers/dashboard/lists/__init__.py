"""The lists of flaky, slow and skipped tests."""
