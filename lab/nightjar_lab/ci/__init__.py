"""What CI should do for a pull request or a commit: ask the bot, and write its answer for CI. `nightjar` does too."""
