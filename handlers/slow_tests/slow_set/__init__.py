"""The weekly pull request that marks tests as slow, and unmarks them."""
