"""Commands: their grammar, their declaration, the dialogue, the help."""
