"""The first page, with all repositories, and the search."""
