"""Carries events from GitHub to handlers and their effects back; knows no feature."""
