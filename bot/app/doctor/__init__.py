"""Checks of everything that the bot depends on and cannot fix by itself; each failure has a remedy."""
