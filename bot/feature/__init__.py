"""A feature as one value, and what the program gives to features when it starts."""

from bot.feature.declaration import Feature

__all__ = ["Feature"]
