"""A feature as one value, and what the program gives to features when it starts."""

from bot.feature.declaration import Every, Feature, Gauges
from bot.feature.services import Services

__all__ = ["Every", "Feature", "Gauges", "Services"]
