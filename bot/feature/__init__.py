"""A feature as one value, and what the program gives to features when it starts."""

from bot.feature.declaration import HANDLER_TITLES, Feature, Gauges, RecurringWork
from bot.feature.services import Services

__all__ = ["HANDLER_TITLES", "Feature", "Gauges", "RecurringWork", "Services"]
