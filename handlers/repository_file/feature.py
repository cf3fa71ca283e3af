"""Everything of `.github/nightjar.yaml`."""

from __future__ import annotations

from bot.feature import Feature
from bot.github.in_force import REPOSITORY_FILE
from handlers.repository_file import handler
from handlers.repository_file.effects import StoreRepositoryFile
from handlers.repository_file.sweep import LOOKED

FEATURE = Feature(
    name="repository_file",
    records=(REPOSITORY_FILE, LOOKED),
    router=handler.router,
    effects=(StoreRepositoryFile,),
)
