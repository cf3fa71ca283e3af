"""A simulator of labs whose truth is known, and the measurement of what the bot reports about them."""
