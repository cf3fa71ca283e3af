"""A feature as one value, and what the program gives to features when it starts."""

from bot.feature.declaration import Feature, Gauges, RecurringWork
from bot.feature.services import Services

__all__ = ["Feature", "Gauges", "RecurringWork", "Services"]
