"""`/operate`: pages on which operators watch the bot itself, and replay deliveries."""
