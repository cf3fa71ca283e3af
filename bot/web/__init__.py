"""The HTTP surface: webhook, health, metrics and the API."""
