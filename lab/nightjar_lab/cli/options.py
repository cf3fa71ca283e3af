"""Options that several commands share, and the kinds of values that they accept."""

from __future__ import annotations

import re  # noqa: TID251
from typing import TYPE_CHECKING, Any

import click

from nightjar_formats.model import FULL_SHA, LAB_NAME, REPOSITORY_NAME, RUN_NAME, SUITE_NAME, TARGET_NAME
from nightjar_formats.terminal import quoted_text
from nightjar_lab.api import check_address
from nightjar_lab.cli import texts
from nightjar_lab.command import PASSED

AS_WRITTEN = "\b"
"""Begins a paragraph of a help text that click must not wrap."""
DEFAULT_PREFIX = "results/"

# Classes with bounds, or one at the end: none of them backtracks.
_REPOSITORY = re.compile(REPOSITORY_NAME)  # noqa: TID251
_SEGMENT = re.compile(LAB_NAME)  # noqa: TID251
_RUN_ID = re.compile(RUN_NAME)  # noqa: TID251
_SUITE = re.compile(SUITE_NAME)  # noqa: TID251
_SHA = re.compile(FULL_SHA)  # noqa: TID251
_SHARD = re.compile(r"[1-9][0-9]{0,4}/[1-9][0-9]{0,4}")  # noqa: TID251
_TARGET = re.compile(TARGET_NAME)  # noqa: TID251
# It stands in YAML, in Groovy and in a shell: no blank, quote or character that means something there. A wheel on this
# machine, a wheel elsewhere with its digest, or a full commit: nobody can replace what these name. No name of an index:
# nightjar-lab is on none, so whoever registers it there would run code in labs (docs/decisions/releases.md).
_PACKAGE = re.compile(  # noqa: TID251
    r"(?:\./)?[A-Za-z0-9][A-Za-z0-9._+/-]{0,200}\.whl"
    r"|https://[A-Za-z0-9][A-Za-z0-9._+:/-]{0,300}\.whl#sha256=[0-9a-f]{64}"
    r"|git\+(?:https|ssh)://[A-Za-z0-9][A-Za-z0-9._+:/@-]{0,300}@[0-9a-f]{40}(?:#subdirectory=[A-Za-z0-9._/-]{1,100})?"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")  # noqa: TID251
_PAIR = re.compile(r"[^=]{1,1000}=[\s\S]*")  # noqa: TID251


# It is generic since click 8.3, which has left Python 3.9.
if TYPE_CHECKING:
    TextType = click.ParamType[str]
else:
    TextType = click.ParamType


class TextOfForm(TextType):
    """A text of a certain form; errors describe it with `words`."""

    name = "text"

    def __init__(self, pattern: re.Pattern[str], words: str) -> None:
        self._pattern = pattern
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, or fail as click does."""
        if not self._pattern.fullmatch(str(value)):
            self.fail(texts.INVALID_VALUE.format(value=quoted_text(str(value)), words=self._words), param, ctx)
        return str(value)


class BotAddress(TextType):
    """The bot's address; empty where a variable of CI is empty."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without its last slash, or fail as click does."""
        try:
            return check_address(str(value).strip()) if str(value).strip() else ""
        except ValueError as error:
            self.fail(str(error), param, ctx)


REPOSITORY = TextOfForm(_REPOSITORY, texts.REPOSITORY_FORM)
SEGMENT = TextOfForm(_SEGMENT, texts.SEGMENT_FORM)
TARGET = TextOfForm(_TARGET, texts.TARGET_FORM)
SHA = TextOfForm(_SHA, texts.SHA_FORM)
RUN_ID = TextOfForm(_RUN_ID, texts.RUN_ID_FORM)
SUITE = TextOfForm(_SUITE, texts.SUITE_FORM)
SHARD = TextOfForm(_SHARD, texts.SHARD_FORM)
PACKAGE = TextOfForm(_PACKAGE, texts.PACKAGE_FORM)
VARIABLE = TextOfForm(_VARIABLE, texts.VARIABLE_FORM)
PAIR = TextOfForm(_PAIR, texts.PAIR_FORM)

pass_option = click.option(
    "--pass-variable",
    "passed",
    type=VARIABLE,
    multiple=True,
    metavar="NAME",
    envvar=PASSED,
    show_envvar=True,
    help="A variable of yours that COMMAND gets as well; may be repeated.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
url_option = click.option(
    "--url", type=BotAddress(), envvar="NIGHTJAR_URL", show_envvar=True, help="The bot's address."
)
lab_option = click.option("--lab", type=SEGMENT, envvar="NIGHTJAR_LAB", show_envvar=True, help="Your lab in app.yaml.")
repository_option = click.option(
    "--repo",
    "--repository",
    "repository",
    type=REPOSITORY,
    envvar="NIGHTJAR_REPOSITORY",
    show_envvar=True,
    help="The repository: OWNER/NAME.",
)
bucket_option = click.option("--bucket", envvar="NIGHTJAR_BUCKET", show_envvar=True, help="The S3 bucket.")
prefix_option = click.option(
    "--prefix",
    envvar="NIGHTJAR_PREFIX",
    show_envvar=True,
    default=DEFAULT_PREFIX,
    show_default=True,
    help="The folder in the bucket.",
)
