"""`nightjar ci docker-images`: which Docker images CI should use, the released ones or those in staging."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from nightjar_formats.terminal import escape_controls

from bot.cli.support import AS_WRITTEN, Matching, json_option, stopping_at_faults
from bot.cli.texts import (
    GAVE_UP,
    IMAGE_NOT_WRITTEN,
    IMAGES_UNREADABLE,
    INVALID_IMAGE,
    NO_IMAGES,
    NOT_TEXT,
    PAUSE_TOO_LONG,
    UNKNOWN_IMAGE,
)
from bot.core.errors import TryAgain, UserError
from bot.core.http import open_session
from bot.core.urls import encrypted_url
from bot.core.web_json import Reader
from handlers.docker_update.config import HUB
from handlers.docker_update.docker_hub import DockerHub
from handlers.docker_update.images import HOSTED, IMAGE, has_host, read_images, staging_name

ATTEMPTS = 4
"""Requests for one image before the command fails."""
BACKOFF = 2.0
"""Seconds before the second attempt, doubled before each further one."""
LONGEST_WAIT = 120.0
"""Seconds to wait when Docker Hub asks for a pause; the command fails if it asks for a longer one."""
FOLDER = ".docker-image-names"
"""The folder in which TVM's pipelines look for the names."""


Sleep = Callable[[float], Awaitable[None]]


class EncryptedAddress(click.ParamType[str]):
    """A web address that starts with https://, or is this machine's own."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without its last slash, or fail as click does."""
        try:
            return encrypted_url(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


NAME = Matching(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", "the name of an image in the file, as in ci_cpu")
NAMESPACE = Matching(r"[a-z0-9][a-z0-9_-]{0,127}", "the name of an organization, as in tlcpackstaging")


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar ci docker-images ci_cpu ci_gpu --output-dir {FOLDER}
      nightjar ci docker-images --lookup-only ci_cpu
    """,
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=NAME)
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    default=Path("ci/jenkins/docker-images.ini"),
    show_default=True,
    help="The file that lists the images, below [jenkins].",
)
@click.option(
    "--lookup-only", is_flag=True, help="Print the images of the file without their names; do not ask Docker Hub."
)
@click.option(
    "--staging", type=NAMESPACE, default="tlcpackstaging", show_default=True, help="The namespace to fall back to."
)
@click.option(
    "--registry",
    type=EncryptedAddress(),
    default=HUB,
    show_default=True,
    envvar="NIGHTJAR_REGISTRY",
    show_envvar=True,
    help="Address of Docker Hub's API, or of a compatible one.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each image to a file with its name in this folder.",
)
@json_option
def docker_images(
    names: Sequence[str],
    path: Path,
    lookup_only: bool,
    staging: str,
    registry: str,
    output_dir: Path | None,
    as_json: bool,
) -> None:
    """Print for each NAME the Docker image that CI should use, as NAME=IMAGE.

    This is the image in the file if Docker Hub has it, or if it names another host, such as Amazon's. Only if Docker
    Hub answers 404, it is the image with the same tag in the staging namespace. Any other failure is an error after a
    few attempts; nothing is printed or written then.
    """
    with stopping_at_faults():
        images = images_in_file(names, path)
        if not lookup_only:
            images = asyncio.run(choose_images_at(images, registry, staging))
        if output_dir is not None:
            _write(images, output_dir)
    if as_json:
        click.echo(json.dumps(images, indent=2))
        return
    for name, image in images.items():
        click.echo(escape_controls(image if lookup_only else f"{name}={image}"))


def images_in_file(names: Sequence[str], path: Path) -> dict[str, str]:
    """Return the images of a file by their names. Raises `UserError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or NOT_TEXT
        raise UserError(IMAGES_UNREADABLE.format(path=path, reason=reason.lower())) from None
    try:
        images_in_file = read_images(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    for name in names:
        if name.lower() not in images_in_file:
            raise UserError(UNKNOWN_IMAGE.format(path=path, name=name, known=", ".join(images_in_file) or NO_IMAGES))
    images = {name: images_in_file[name.lower()] for name in names}
    for name, image in images.items():
        # The file may come from a pull request, and pipelines use the printed values in commands.
        if not (HOSTED if has_host(image) else IMAGE).fullmatch(image):
            raise UserError(INVALID_IMAGE.format(name=name, image=image, path=path))
    return images


async def choose_images_at(images: Mapping[str, str], address: str, staging: str) -> dict[str, str]:
    """Return the images to use, with requests to the registry at this address. Raises `UserError` like the next."""
    async with open_session() as session:
        return await choose_images(images, DockerHub(Reader(session), address), staging)


async def choose_images(
    images: Mapping[str, str], registry: DockerHub, staging: str, sleep: Sleep = asyncio.sleep
) -> dict[str, str]:
    """Return the images to use. Raises `UserError` if Docker Hub does not answer whether one exists."""
    chosen = {}
    for name, image in images.items():
        parts = IMAGE.fullmatch(image)
        if has_host(image) or parts is None or await _exists(registry, parts.groups(), sleep):
            chosen[name] = image
        else:
            chosen[name] = f"{staging_name(parts['name'], staging)}:{parts['tag']}"
    return chosen


async def _exists(registry: DockerHub, parts: Sequence[str], sleep: Sleep) -> bool:
    namespace, name, tag = parts
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await registry.has(f"{namespace}/{name}", tag)
        except TryAgain as error:
            wait = BACKOFF * 2 ** (attempt - 1) if error.retry_in is None else error.retry_in
            if attempt == ATTEMPTS:
                raise UserError(GAVE_UP.format(problem=error, tries=ATTEMPTS)) from None
            if wait > LONGEST_WAIT:
                raise UserError(PAUSE_TOO_LONG.format(problem=error, seconds=wait)) from None
            await sleep(wait)
    # mypy assumes that the loop may end.
    raise AssertionError("the last attempt returns or raises")


def _write(images: Mapping[str, str], folder: Path) -> None:
    """Write each image to a file of its name, without a line end: pipelines use the whole content."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, image in images.items():
            (folder / name).write_text(image, encoding="utf-8")
    except OSError as error:
        raise UserError(IMAGE_NOT_WRITTEN.format(path=folder, reason=(error.strerror or "").lower())) from None
