"""Shared code that knows neither GitHub's API, the engine nor any feature."""
