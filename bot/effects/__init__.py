"""Everything that is ever written to GitHub, to a CI, or into our own records; each effect is idempotent."""
