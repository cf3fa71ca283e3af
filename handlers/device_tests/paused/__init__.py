"""Targets that their lab, or a maintainer, paused until a date: no requests, and no degradation."""
