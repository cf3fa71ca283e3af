"""Decide whether CI has to rebuild Docker images. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_lab.ci.decision import CiVerdict
from nightjar_lab.ci.texts import FALLBACK, IMAGES_ARE_BUILT

from bot.config.types import matches
from handlers.changed_files.changes import Changes, UnknownChanges
from handlers.changed_files.verdicts import shown_name
from handlers.rebuild_docker import texts

if TYPE_CHECKING:
    from handlers.rebuild_docker.config import RebuildDocker


def rebuild_docker(config: RebuildDocker | None, changes: Changes) -> CiVerdict:
    """Say whether CI has to rebuild Docker images; a CI that is skipped does not ask.

    This differs from the predecessor's script on purpose. A file counts by its folder, not by `docker/` anywhere in its
    path (`tests/docker/x.py` rebuilt the images), and any file can be ignored (`docker/README.md` could not).
    """
    if config is None:
        return CiVerdict(True, texts.IMAGES_NOT_ON)
    if isinstance(changes, UnknownChanges):
        return CiVerdict(True, FALLBACK.format(why=changes.reason, what=IMAGES_ARE_BUILT))
    image_files = (name for name in changes.names if matches(config.paths, name) and not matches(config.ignore, name))
    name = next(image_files, None)
    return (
        CiVerdict(False, texts.IN_NO_IMAGE)
        if name is None
        else CiVerdict(True, texts.IN_AN_IMAGE.format(name=shown_name(name)))
    )
