"""Everything of `.github/nightjar.yaml`."""

from __future__ import annotations

from bot.feature import Feature
from handlers.repository_file import handler
from handlers.repository_file.effects import StoreRepositoryFile

FEATURE = Feature(
    name="repository_file",
    router=handler.router,
    effects=(StoreRepositoryFile,),
)
