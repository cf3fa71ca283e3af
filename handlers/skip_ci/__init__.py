"""Say on a pull request whether CI may skip it."""
