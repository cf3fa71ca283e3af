"""What labs ask of the bot: work for their devices, and what became of it."""
