"""Checks of everything that the bot depends on and cannot put right by itself; each failure comes with a remedy."""
