"""The half of the plugin that selects and reports tests: slow tests, shards, the report, the reproduce command."""

from __future__ import annotations
