"""Measurements of the whole bot: what a delivery costs and how soon it is answered. README.md has the figures."""
