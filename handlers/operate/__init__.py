"""`/operate`: what operators see of the bot itself, and replays."""
