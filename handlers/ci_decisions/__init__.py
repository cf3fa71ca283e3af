"""Answer a CI that asks what it should run."""
