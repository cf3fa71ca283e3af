"""The link to the docs that CI has built for a pull request."""
