"""The texts of the greeting."""

GREETING = "\N{WAVING HAND SIGN} {text}"
FIRST, NOT_FIRST = "this is the first contribution of its author", "its author has contributed before"
COMMANDS = "Comment {help} to see what I can do for you."
