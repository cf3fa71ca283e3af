"""What the bot knows about repositories: names, visibility, settings and people's roles."""
