"""How tests ended from commit to commit."""
