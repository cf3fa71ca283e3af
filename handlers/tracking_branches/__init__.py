"""What the nightly and the last good branch share: scan the source branch, decide, store, and report."""
