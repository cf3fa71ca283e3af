"""The lowest layer: shared code that imports no other package of the bot."""
