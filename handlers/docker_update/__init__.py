"""The pull request that updates Docker images."""
