"""The pages of pull requests."""
