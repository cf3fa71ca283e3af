"""The engine as commands use it: to read beside a server, or to run jobs where no server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.app.load import load_config
from bot.cli.support import start_logging
from bot.config.environment import DatabaseSettings, Settings
from bot.engine.service import Engine


def reading_engine() -> Engine:
    """Return an engine that reads the database of DATABASE_URL. Raises DatabaseError if there is none."""
    settings = DatabaseSettings.from_environment()
    start_logging(settings)
    engine = Engine(settings.database_url.get_secret_value())
    engine.database.must_exist()
    return engine


@asynccontextmanager
async def working_engine(config_path: Path) -> AsyncIterator[Engine]:
    """Yield an engine that runs jobs in this process; at the end of the block wait for jobs in progress."""
    # The server takes half a second to import, and reading needs none of it.
    from bot.app.serve import end, open_bot

    config, settings = load_config(config_path), Settings.from_environment()
    start_logging(settings)
    async with open_bot(config, settings) as bot:
        await bot.engine.recover()
        worker = asyncio.create_task(bot.engine.run(), name="engine")
        try:
            yield bot.engine
        finally:
            await end(bot.engine, worker)
