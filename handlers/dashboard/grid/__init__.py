"""The grid of a repository, its commits, picture and feed."""
