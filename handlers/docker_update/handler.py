"""Propose the newest tag of each Docker image of CI once a day, in one pull request on one branch.

The newest tag is the one that was pushed last in the main or the staging namespace; only tags that builds give (date,
time, commit) count. The pull request is updated in place, and closed when the base has all of its changes
(`bot.effects.pulls`).

This differs from TVM's script on purpose. It edits the file that CI reads, and nothing but the tags in it. It also
proposes a tag that both namespaces have, if the file has an older one. Images that share a tag get a tag that all of
them have. An image without tags is reported and does not stop the update of the others. If nothing is new, nothing is
written, and an existing pull request is not an error.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from bot.core.errors import UserError
from bot.core.utc import iso_utc
from bot.core.web_json import READER
from bot.effects.pulls import EnsurePull
from bot.github.commits.contents import FILE, found_at
from bot.github.commits.refs import branch_head
from bot.github.limits.ranks import Rank, ranked
from bot.github.text.markdown import code
from bot.plan.handler import Context, Plan, Router
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.docker_update.config import DOCKER_UPDATE
from handlers.docker_update.docker_hub import DockerHub
from handlers.docker_update.images import Update, find_references, staging_name, update_tags
from handlers.docker_update.texts import (
    BODY,
    NEWER_TAGS,
    NO_BASE,
    NO_IMAGES,
    NO_IMAGES_FILE,
    NO_NEWER_TAGS,
    NOT_TEXT,
    NOT_UPDATED,
    ROW,
    TITLE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handlers.docker_update.config import DockerUpdate
    from handlers.docker_update.images import ImageReference

NAME = "docker-update"
LARGEST_FILE = 64 * 1024
"""The most bytes of the file that names the images."""


router = Router()


@router.on(TIMER_EVENT.name, NAME, name=NAME, feature="docker_update")
async def update_images(context: Context) -> Plan:
    """Read the file on the base branch and the tags of its images, and propose the newest tags."""
    config = context.config.of(DOCKER_UPDATE)
    assert config is not None, "the handler runs only where the feature is on"
    with ranked(Rank.SWEEP):
        base_sha = await branch_head(context.github, context.repository.full_name, config.base)
        if base_sha is None:
            raise UserError(NO_BASE.format(branch=code(config.base)))
        text = await _read_text(context, config, base_sha)
    images = find_references(text, (config.namespace, config.staging))
    registry = DockerHub(context.part(READER), config.registry)
    tags = {image.key: await _read_tags(registry, image, config) for image in images}
    update = update_tags(text, images, tags, config.namespace)
    return plan_docker_update(update, images, config, base_sha, iso_utc(moment_of(context.delivery.payload)))


def plan_docker_update(
    update: Update, images: Sequence[ImageReference], config: DockerUpdate, base_sha: str, moment: str
) -> Plan:
    """Return the plan for the pull request. `moment` is in ISO 8601, `base_sha` the commit below its change."""
    if not images:
        return Plan(why=NO_IMAGES.format(path=config.file, namespace=config.namespace, staging=config.staging))
    notes = "".join(f"; {note}" for note in update.notes)
    if not update.changes:
        return Plan(
            (EnsurePull(config.branch, config.base, moment),), why=NO_NEWER_TAGS.format(all=len(images)) + notes
        )
    names = "\n".join(f"{change.key}={change.new_image}" for change in update.changes)
    rows = [
        ROW.format(key=code(change.key), before=code(change.old_image), after=code(change.new_image))
        for change in update.changes
    ]
    footnote = NOT_UPDATED.format(notes="; ".join(update.notes)) if update.notes else ""
    ensure = EnsurePull(
        branch=config.branch,
        base=config.base,
        at=moment,
        base_sha=base_sha,
        path=config.file,
        content=update.text,
        # The tags identify the proposal: with the same tags it is the same, whatever else changes in the file.
        key=hashlib.sha256(names.encode()).hexdigest()[:24],
        title=TITLE,
        body=BODY.format(file=config.file, rows="\n".join(rows), notes=footnote),
        message=f"{TITLE}\n\n{names}",
    )
    return Plan((ensure,), why=NEWER_TAGS.format(count=len(update.changes), all=len(images)) + notes)


async def _read_text(context: Context, config: DockerUpdate, base_sha: str) -> str:
    file = await found_at(context.github, context.repository.full_name, config.file, base_sha)
    if file is None or file.kind != FILE:
        raise UserError(NO_IMAGES_FILE.format(path=code(config.file), branch=code(config.base)))
    try:
        text = file.raw.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or file.size > LARGEST_FILE:
        raise UserError(NOT_TEXT.format(path=code(config.file), most=LARGEST_FILE // 1024))
    return text


async def _read_tags(registry: DockerHub, image: ImageReference, config: DockerUpdate) -> Mapping[str, float]:
    """Return the tags of an image in both namespaces, with the time of the last push."""
    released = await registry.tags(image.in_main(config.namespace))
    waiting = await registry.tags(staging_name(image.name, config.staging))
    return {tag: max(released.get(tag, 0.0), waiting.get(tag, 0.0)) for tag in {*released, *waiting}}
