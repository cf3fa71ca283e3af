"""Link the docs that CI has built for a pull request's head, in the sticky comment.

The link is made from the status's target URL (`…/PR-12/3/…`), whose number counts only if the status's commit is that
pull request's head. The predecessor asked GitHub about every status of every commit, crashed on an address without
`PR-`, and could not edit what it had written (TVM #12902, #11909).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from bot.core.events import Payload
from bot.core.patterns import Pattern
from bot.core.urls import linkable
from bot.effects.section_words import moment, seconds_since_1970, short
from bot.effects.sections import SubmitSection
from bot.feature import Feature
from bot.github.pull_heads import confirmed_head, pulls_with_head
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.docs_link.config import DOCS, KEYS, DocsLink
from handlers.docs_link.texts import BUILT, LINKED, NO_BUILD, NO_HEAD, NOT_LINKED, TROUBLE

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME = "docs-link"
KEY = "docs"
SUCCESS = "success"


_PLACEHOLDER = Pattern(r"\{(\w+)\}")
_BUILD = Pattern(r"/PR-([1-9][0-9]{0,9})/([0-9]{1,10})(?:/|$)")

router = Router()


@dataclass(frozen=True, slots=True)
class DocsBuild:
    """A build of a pull request's job, as a status's target URL names it."""

    number: int
    build: str


def build_of(target_url: str) -> DocsBuild | None:
    """Read the build from a status's target URL, which may be any text; None if its path names no build."""
    try:
        path = urlsplit(target_url).path
    # urlsplit raises ValueError for `http://[`, and CI may write any address.
    except ValueError:
        return None
    match = _BUILD.search(path)
    return DocsBuild(int(match[1]), match[2]) if match else None


def link(config: DocsLink, number: int, build: str, sha: str) -> str:
    """Return the address of a build's docs."""
    values = {"number": str(number), "build": build, "sha": sha}
    return linkable(_PLACEHOLDER.sub(lambda name: quote(values[name[1]], safe=""), config.link))


async def report_failure(context: Context, message: str) -> Plan:
    """Show in the section that docs were built, and why they are not linked."""
    config, status = context.config.of(DOCS), context.delivery.payload
    if config is None or not _is_docs_build(config, status):
        return NOTHING
    updated_at, numbers = status.text("updated_at"), await _pull_numbers(context)
    text = TROUBLE.format(sha=short(status.string("sha")), why=message)
    effects = [SubmitSection(NAME, n, status.string("sha"), text, seconds_since_1970(updated_at)) for n in numbers]
    return Plan(tuple(effects), why=NOT_LINKED)


def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a status reports that docs were built; few of the hundreds per hour do."""
    docs = config.of(DOCS)
    return docs is not None and _is_docs_build(docs, delivery.payload)


@router.on("status", name=NAME, feature=KEY, on_failure=report_failure, accepts=accepts)
async def show(context: Context) -> Plan:
    """Link the docs that a status reports, on the pull requests whose head they were built from."""
    config, status = context.config.of(DOCS), context.delivery.payload
    if config is None or not _is_docs_build(config, status):
        return NOTHING
    sha, build = status.string("sha"), build_of(status.text("target_url"))
    if build is None and "{build}" in config.link:
        return Plan(why=NO_BUILD)
    updated_at, effects = status.text("updated_at"), []
    for number in await _pull_numbers(context):
        # The number in an address proves nothing: anyone who may set a status may write any number.
        if await confirmed_head(context.records, context.github, context.repository, number, sha) is None:
            return Plan(why=NO_HEAD.format(sha=sha, number=number))
        url = link(config, number, build.build if build else "", sha)
        text = BUILT.format(sha=short(sha), url=url, at=moment(updated_at))
        # The section is as old as its status, because statuses may arrive in any order.
        effects.append(SubmitSection(NAME, number, sha, text, seconds_since_1970(updated_at)))
    return Plan(tuple(effects), why=LINKED.format(sha=sha))


def _is_docs_build(config: DocsLink, status: Payload) -> bool:
    return (status.text("context"), status.text("state")) == (config.context, SUCCESS)


async def _pull_numbers(context: Context) -> list[int]:
    """Return the pull requests that a status may be about: the one in its address, or those with its commit."""
    status = context.delivery.payload
    build = build_of(status.text("target_url"))
    if build is not None:
        return [build.number]
    return await pulls_with_head(context.records, context.repository.id, status.string("sha"))


FEATURE = Feature(
    name="docs_link", config=KEYS, router=router, sections=(NAME,), titles={"docs-link": "Link to the docs"}
)
