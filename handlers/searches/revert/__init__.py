"""`revert: draft`: reverts a culprit once the tests pass without it. See docs/decisions/draft-reverts.md."""
