"""What a process that reads untrusted input has loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bot.app.features import ALL_FEATURES

ROOT = Path(__file__).parent.parent.parent
NOT_NEEDED = ("aiohttp", "asyncio", "cryptography", "procrastinate", "psycopg", "pydantic", "sqlalchemy", "structlog")
PROGRAM = """
import importlib, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
print(*sorted(sys.modules))
"""


def test_a_process_that_reads_untrusted_input_has_no_network_and_no_database() -> None:
    """They would also make up most of its start time, and the pool starts one after each loss."""
    preload = [module for feature in ALL_FEATURES for module in feature.preload]
    command = [sys.executable, "-c", PROGRAM, "bot.core.untrusted.child", *preload]
    loaded = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    assert set(preload) <= set(loaded)
    assert not set(NOT_NEEDED) & set(loaded)
