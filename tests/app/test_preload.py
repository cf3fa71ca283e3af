"""What the processes of the bot have loaded, besides what they use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bot.app.features import ALL_FEATURES
from sandbox import GitHubSandbox

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


SERVING = """
import asyncio, sys
from pathlib import Path
from bot.app.load import load_config
from bot.app.address import Address
from bot.app.serve import running
from bot.config.environment import Settings
async def serve():
    async with running(load_config(sys.argv[1]), Settings.from_environment(), Address("127.0.0.1", 0)):
        Path(sys.argv[2]).write_text(" ".join(sys.modules))
asyncio.run(serve())
"""


def test_a_bot_without_labs_has_loaded_neither_migrations_nor_clients_of_buckets(tmp_path: Path) -> None:
    """Alembic takes 12 MiB, boto3 with botocore 16, RapidFuzz 2, and SQLAlchemy has an ORM as well.

    A bot keeps what it has loaded for as long as it runs.
    """
    config = tmp_path / "app.yaml"
    config.write_text("repositories:\n  example-lab/compiler:\n", encoding="utf-8")
    environment = {
        **os.environ,
        "GITHUB_APP_ID": "1",
        "GITHUB_PRIVATE_KEY": GitHubSandbox().create_app("nightjar", events=()).private_key,
        "GITHUB_WEBHOOK_SECRET": "s" * 32,
        "GITHUB_API_URL": "http://127.0.0.1:9",
        "DATABASE_URL": f"sqlite:///{tmp_path}/nightjar.db",
    }
    modules = tmp_path / "modules"
    command = [sys.executable, "-c", SERVING, str(config), str(modules)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    names = set(modules.read_text(encoding="utf-8").split())
    assert "sqlalchemy.dialects.sqlite" in names
    assert not {"sqlalchemy.orm", "sqlalchemy.ext"} & names
    packages = {name.partition(".")[0] for name in names}
    assert not {"alembic", "mako", "boto3", "botocore", "rapidfuzz", "s3transfer"} & packages
