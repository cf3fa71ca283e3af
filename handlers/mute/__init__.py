"""*Mute* on the page of a test: a pull request that adds the test to `quarantine` in the repository's own file."""
