"""`nightjar ci docker-images`: which Docker images a CI takes, the ones that are released or the ones that will be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import click

from bot.cli.support import AS_WRITTEN, Matching, json_option, stopping_at_faults
from bot.config.docker_update import HUB
from bot.core.errors import TryAgain, UserError
from bot.core.terminal import printable
from bot.core.urls import encrypted_url
from bot.core.web_json import Reader
from handlers.docker_update.docker_hub import Registry
from handlers.docker_update.images import HOSTED, IMAGE, has_host, read_images, staged

TRIES = 4
BACKOFF = 2.0
"""Seconds before the second try, doubled before each further one."""
LONGEST_WAIT = 120.0
"""Seconds that are waited where a registry asks for a pause; a longer one ends the command."""
FOLDER = ".docker-image-names"
"""Where TVM's pipelines look for the names."""

UNREADABLE = "{path} cannot be read ({reason}); name the file of images with --file"
UNKNOWN = "{path} has no image {name}; it has {known}"
NOT_AN_IMAGE = "{name} is {image} in {path}; an image is written NAMESPACE/NAME:TAG"
GAVE_UP = "{problem}; tried {tries} times"
TOO_LONG = "{problem}; it asks to be left alone for {seconds:.0f} s"
NOT_WRITTEN = "{path} cannot be written ({reason})"

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
    help="The file that names the images, below [jenkins].",
)
@click.option("--lookup-only", is_flag=True, help="Print what the file says, without names; ask no registry.")
@click.option("--staging", type=NAMESPACE, default="tlcpackstaging", show_default=True, help="What to fall back to.")
@click.option(
    "--registry",
    type=EncryptedAddress(),
    default=HUB,
    show_default=True,
    envvar="NIGHTJAR_REGISTRY",
    show_envvar=True,
    help="Where Docker Hub's API is, or one like it.",
)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder: write each image into a file of its name there.",
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
    """Print for each NAME the Docker image that CI is to take, as NAME=IMAGE.

    It is the one that the file names, if the registry has it or if it names a registry of its own, such as Amazon's.
    If the registry says that it is not there (404), and only then, it is the one of the same tag in the staging
    namespace. Anything else that goes wrong is an error, after some tries: nothing is printed or written then.
    """
    with stopping_at_faults():
        images = named_images(names, path)
        if not lookup_only:
            images = asyncio.run(_determined(images, registry, staging))
        if output_dir is not None:
            _write(images, output_dir)
    if as_json:
        click.echo(json.dumps(images, indent=2))
        return
    for name, image in images.items():
        click.echo(printable(image if lookup_only else f"{name}={image}"))


def named_images(names: Sequence[str], path: Path) -> dict[str, str]:
    """Return what a file says of images by their names. Raises `UserError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UserError(UNREADABLE.format(path=path, reason=reason.lower())) from None
    try:
        known = read_images(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    for name in names:
        if name.lower() not in known:
            raise UserError(UNKNOWN.format(path=path, name=name, known=", ".join(known) or "none"))
    images = {name: known[name.lower()] for name in names}
    for name, image in images.items():
        # The file may be a pull request's, and what is printed and written ends in commands of a pipeline.
        if not (HOSTED if has_host(image) else IMAGE).fullmatch(image):
            raise UserError(NOT_AN_IMAGE.format(name=name, image=image, path=path))
    return images


async def _determined(images: Mapping[str, str], address: str, staging: str) -> dict[str, str]:
    async with aiohttp.ClientSession() as session:
        return await determined(images, Registry(Reader(session), address), staging)


async def determined(
    images: Mapping[str, str], registry: Registry, staging: str, sleep: Sleep = asyncio.sleep
) -> dict[str, str]:
    """Return the images to take. Raises `UserError` where the registry does not say whether one is there."""
    found = {}
    for name, image in images.items():
        parts = IMAGE.fullmatch(image)
        if has_host(image) or parts is None or await _is_there(registry, parts.groups(), sleep):
            found[name] = image
        else:
            found[name] = f"{staged(parts['name'], staging)}:{parts['tag']}"
    return found


async def _is_there(registry: Registry, parts: Sequence[str], sleep: Sleep) -> bool:
    namespace, name, tag = parts
    for attempt in range(1, TRIES + 1):
        try:
            return await registry.has(f"{namespace}/{name}", tag)
        except TryAgain as error:
            wait = BACKOFF * 2 ** (attempt - 1) if error.retry_in is None else error.retry_in
            if attempt == TRIES:
                raise UserError(GAVE_UP.format(problem=error, tries=TRIES)) from None
            if wait > LONGEST_WAIT:
                raise UserError(TOO_LONG.format(problem=error, seconds=wait)) from None
            await sleep(wait)
    raise AssertionError("the last attempt returns or raises")


def _write(images: Mapping[str, str], folder: Path) -> None:
    """Write each image into a file of its name, without a line end: pipelines take the whole of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, image in images.items():
            (folder / name).write_text(image, encoding="utf-8")
    except OSError as error:
        raise UserError(NOT_WRITTEN.format(path=folder, reason=(error.strerror or "").lower())) from None
