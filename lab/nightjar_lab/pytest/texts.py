"""Every sentence of the pytest plugin that people read."""

from __future__ import annotations

# Targets

# Slow tests, shards and reports
