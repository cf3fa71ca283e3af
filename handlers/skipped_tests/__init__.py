"""Report the tests that CI skips at a pull request's head and ran before."""
