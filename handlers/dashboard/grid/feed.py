"""`/r/{owner}/{repo}/regressions.atom`: the messages about lasting failures as an Atom feed (RFC 4287)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from xml.etree import ElementTree

from pydantic import BaseModel, Field, StringConstraints

from bot.core.page_paths import history_path, view_path
from bot.core.patterns import Pattern
from bot.core.utc import iso_utc
from bot.results.store.failures.failures import RegressionMessage, newest_messages
from bot.web.page_files import PageFile
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.settings import TARGET_PATTERN, results_of

if TYPE_CHECKING:
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

ATOM = "http://www.w3.org/2005/Atom"
SECONDS = 300
"""Seconds that caches may keep the feed: as long as `DashboardParts.moment` stays the same."""
MOST_ENTRIES = 50
MOST_READ = 1_000
"""The most messages that are read to find those that a query names."""
DAYS, DAY = 90, 86400.0
LONGEST_TITLE = 400
_NOT_XML = Pattern("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, even as escapes; IDs of tests may contain them (https://www.w3.org/TR/xml/#charsets)."""


class FeedQuery(BaseModel, extra="forbid"):
    """The failures that a feed is about; an empty field matches all."""

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="Only this target, as LAB/TARGET."
    )
    path: Annotated[str, StringConstraints(max_length=400)] = Field(
        default="", description="Only tests whose IDs begin so, such as a folder or a file."
    )

    def accepts(self, regression: RegressionMessage) -> bool:
        """Return whether the feed has a message."""
        return self.target in (None, regression.target.full_name) and regression.test.startswith(self.path)


def regressions_feed(parts: DashboardParts) -> PageFile:
    """Return the file with the feed of a repository."""

    async def load(request: PageRequest) -> str:
        name, _, _ = results_of(parts, request.repository)
        since = parts.moment() - DAYS * DAY
        query: FeedQuery = request.query
        most = MOST_READ if query.target or query.path else MOST_ENTRIES
        regressions = await request.pages.run(parts.results.store.read, newest_messages, name, since, most)
        entries = [regression for regression in regressions if query.accepts(regression)][:MOST_ENTRIES]
        return atom_feed(name, entries, parts.public_url, query)

    return PageFile(
        path="/r/{owner}/{repo}/regressions.atom",
        summary="Lasting failures of the nightly branch as an Atom feed",
        media_type="application/atom+xml",
        load=load,
        query=FeedQuery,
        seconds=SECONDS,
    )


ALL = FeedQuery()


def atom_feed(
    repository: str, regressions: Sequence[RegressionMessage], public_url: str, query: FeedQuery = ALL
) -> str:
    """Write the regressions that a query names as an Atom feed, in their order.

    `public_url` is the address of the pages, empty if unknown.
    """
    filters = query.model_dump(exclude_defaults=True)
    ElementTree.register_namespace("", ATOM)
    feed = ElementTree.Element(f"{{{ATOM}}}feed")
    _add(feed, "id", _urn(repository, *(f"{name}={value}" for name, value in filters.items())))
    _add(feed, "title", texts.FEED_TITLE.format(repository=repository))
    _add(feed, "updated", iso_utc(max(map(_changed_at, regressions), default=0.0)))
    _add(feed, "link", rel="self", href=public_url + view_path(repository, "regressions.atom", **filters))
    _add(feed, "link", rel="alternate", type="text/html", href=public_url + view_path(repository))
    _add(ElementTree.SubElement(feed, f"{{{ATOM}}}author"), "name", texts.FEED_AUTHOR)
    for regression in regressions:
        _entry(feed, regression, public_url + history_path(repository, regression.test, regression.target.full_name))
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(feed, encoding="unicode")}\n'


def _entry(feed: ElementTree.Element, regression: RegressionMessage, page: str) -> None:
    entry, message = ElementTree.SubElement(feed, f"{{{ATOM}}}entry"), regression.message
    target = regression.target.full_name
    title = texts.FEED_ENTRY.format(test=regression.test, target=target)
    _add(entry, "id", _urn(regression.target.repository, target, regression.suite, regression.test, message.since))
    _add(entry, "title", title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE]}…")
    _add(entry, "published", iso_utc(message.reported_at))
    _add(entry, "updated", iso_utc(_changed_at(regression)))
    _add(entry, "link", rel="alternate", type="text/html", href=page)
    sentences = [texts.FEED_SINCE.format(suite=regression.suite, since=message.since)]
    if message.good:
        sentences.append(texts.FEED_GOOD.format(good=message.good))
    if message.ended:
        day = datetime.fromtimestamp(message.ended_at, UTC).date().isoformat()
        sentences.append(texts.FEED_ENDED.format(day=day, how=message.ended))
    _add(entry, "content", " ".join(sentences), type="text")


def _changed_at(regression: RegressionMessage) -> float:
    return regression.message.ended_at if regression.message.ended else regression.message.reported_at


def _urn(*parts: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(("nightjar-regressions", *parts))).urn


def _add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> None:
    fit = {key: _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value) for key, value in attributes.items()}
    element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", fit)
    if text:
        element.text = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
