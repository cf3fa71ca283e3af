"""Targets that are degraded by one tier, because their nightly runs are infra or missing for too long."""
