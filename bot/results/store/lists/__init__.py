"""Lists of tests, runs and commits for pages."""
