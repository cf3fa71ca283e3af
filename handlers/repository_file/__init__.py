"""A repository's own file, `.github/nightjar.yaml`."""
