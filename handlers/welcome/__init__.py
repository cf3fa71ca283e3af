"""The greeting for first-time contributors."""
