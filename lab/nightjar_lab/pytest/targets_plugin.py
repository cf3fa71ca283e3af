"""The half of the plugin that parametrises tests: targets, parameters and cached fixtures."""

from __future__ import annotations
