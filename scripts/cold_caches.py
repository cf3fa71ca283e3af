"""A plugin of pytest for `make mutants`: it empties the caches of functions, so that each mutant computes its values.

mutmut runs the tests of every mutant in a fork of a process that has run them before.
"""

from __future__ import annotations

import sys

OURS = ("bot.", "handlers.", "nightjar_formats.")


def pytest_sessionstart() -> None:
    """Empty every cache that `functools` keeps for a function of ours."""
    for name, module in list(sys.modules.items()):
        if name.startswith(OURS):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
