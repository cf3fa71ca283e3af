"""Badges and the Atom feed: what other sites show about a repository."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from xml.etree import ElementTree

import pytest
from nightjar_formats.model import TargetKey

from bot.results.store.failures.failures import FailureMessage, RegressionMessage
from handlers.dashboard.grid.feed import ATOM, FeedQuery, atom_feed
from handlers.dashboard.labs.badge import BadgeColor, svg_badge
from tests.handlers.dashboard.nightly_runs import REPOSITORY, SOFTMAX, sha
from tests.handlers.dashboard.site import DashboardSite

pytestmark = pytest.mark.asyncio(loop_scope="session")
BADGE, FEED = f"/r/{REPOSITORY}/badge", f"/r/{REPOSITORY}/regressions.atom"
HOSTILE = 'x</text><script>alert(1)</script>"&<\x00\x1b\ufffe[a](javascript:b)'
REQUIRED = {"id", "title", "updated"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("example-lab/hexagon-v73", "6 failing"),
        ("example-lab/adreno", "1 failing"),
        ("hubot-lab/rpi-5%40rack%3A2", "stale"),
    ],
)
async def test_a_badge_shows_the_state_of_a_target(site: DashboardSite, path: str, message: str) -> None:
    status, headers, svg = await site.get(f"{BADGE}/{path}.svg")
    assert (status, headers["Content-Type"]) == (200, "image/svg+xml; charset=utf-8")
    assert headers["Cache-Control"] == "public, max-age=300"
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert ElementTree.fromstring(svg).attrib["aria-label"].endswith(f": {message}")
    assert (await site.get(f"{BADGE}/{path}.svg", If_None_Match=headers["Etag"]))[0] == 304


async def test_a_target_without_results_has_a_badge(site: DashboardSite) -> None:
    _, _, svg = await site.get("/r/octocat/new/badge/example-lab/hexagon-v73.svg")
    assert "no results" in svg


@pytest.mark.parametrize(
    "path",
    [
        "compiler/badge/example-lab/other.svg",
        "compiler/badge/other/adreno.svg",
        "secret/badge/example-lab/hexagon-v73.svg",
        "secret/regressions.atom",
        "docs/regressions.atom",
    ],
)
async def test_missing_and_private_targets_are_not_found(site: DashboardSite, path: str) -> None:
    assert (await site.get(f"/r/octocat/{path}"))[0] == 404


async def test_text_in_a_badge_is_escaped() -> None:
    svg = svg_badge(HOSTILE.replace("\x00", "").replace("\x1b", "").replace("\ufffe", ""), "1 < 2", BadgeColor.BAD)
    assert {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()} == {
        "svg", "title", "rect", "path", "g", "text",
    }  # fmt: skip


def message(test: str, *, ended: str = "") -> RegressionMessage:
    target = TargetKey(REPOSITORY, "example-lab", "hexagon-v73")
    failure = FailureMessage(sha(10), sha(9), sha(11), 1_795_000_000.0, ended, sha(12), 1_795_100_000.0)
    return RegressionMessage(target, "operators", test, failure)


def checked_feed(feed: str) -> ElementTree.Element:
    """Return a feed after checking that it has what RFC 4287 requires."""
    root = ElementTree.fromstring(feed.encode())
    assert root.tag == f"{{{ATOM}}}feed"
    assert len(root.findall(f"{{{ATOM}}}author/{{{ATOM}}}name")) == 1
    entries = root.findall(f"{{{ATOM}}}entry")
    for element in (root, *entries):
        names = [child.tag.removeprefix(f"{{{ATOM}}}") for child in element]
        assert {name: names.count(name) for name in REQUIRED} == dict.fromkeys(REQUIRED, 1)
        for moment in (*element.findall(f"{{{ATOM}}}updated"), *element.findall(f"{{{ATOM}}}published")):
            assert datetime.fromisoformat(moment.text or "").tzinfo is not None
        relations = [link.attrib["rel"] for link in element.findall(f"{{{ATOM}}}link")]
        assert relations.count("alternate") == 1
    ids = [element.text or "" for element in root.iter(f"{{{ATOM}}}id")]
    assert len(set(ids)) == len(ids)
    assert all(element.startswith("urn:uuid:") for element in ids)
    return root


async def test_a_feed_is_valid_and_its_entries_name_test_and_commits() -> None:
    messages = [message(SOFTMAX), message("test_b", ended="recovered"), message(HOSTILE)]
    root = checked_feed(atom_feed(REPOSITORY, messages, "https://ci.example.org"))
    first, second, third = root.findall(f"{{{ATOM}}}entry")
    assert first.findtext(f"{{{ATOM}}}title") == f"{SOFTMAX} fails on example-lab/hexagon-v73"
    assert sha(10) in (first.findtext(f"{{{ATOM}}}content") or "")
    link = first.find(f"{{{ATOM}}}link")
    assert link is not None
    assert link.attrib["href"].startswith(f"https://ci.example.org/r/{REPOSITORY}/tests?id=tests%2Fpython")
    assert (second.findtext(f"{{{ATOM}}}content") or "").endswith("The failure ended on 2026-11-19: recovered.")
    assert second.findtext(f"{{{ATOM}}}updated") != second.findtext(f"{{{ATOM}}}published")
    assert "<script>" in (third.findtext(f"{{{ATOM}}}title") or "")


async def test_a_feed_can_be_about_a_target_and_a_path(site: DashboardSite) -> None:
    other = replace(message(SOFTMAX), target=TargetKey(REPOSITORY, "example-lab", "adreno"))
    messages = [message(SOFTMAX), message("test_b"), other]
    folder = SOFTMAX.partition("::")[0]
    for query, accepted in (
        (FeedQuery(), messages),
        (FeedQuery(target="example-lab/adreno"), [other]),
        (FeedQuery(path=folder), [messages[0], other]),
        (FeedQuery(target="example-lab/hexagon-v73", path=folder), [messages[0]]),
        (FeedQuery(path="nothing"), []),
    ):
        assert [one for one in messages if query.accepts(one)] == accepted
    filtered = f"{FEED}?target=example-lab%2Fadreno&path=tests"
    status, _, feed = await site.get(filtered)
    root = checked_feed(feed)
    (own,) = [link.attrib["href"] for link in root if link.attrib.get("rel") == "self"]
    assert (status, own.endswith(filtered)) == (200, True)
    assert root.findtext(f"{{{ATOM}}}id") != checked_feed((await site.get(FEED))[2]).findtext(f"{{{ATOM}}}id")
    assert [(await site.get(f"{FEED}?{query}"))[0] for query in ("target=adreno", "folder=a", "path=" + "a" * 401)] == [
        400
    ] * 3


async def test_the_feed_of_a_repository_without_messages_is_empty_and_valid(site: DashboardSite) -> None:
    status, headers, feed = await site.get("/r/octocat/new/regressions.atom")
    assert (status, headers["Content-Type"]) == (200, "application/atom+xml; charset=utf-8")
    assert checked_feed(feed).findall(f"{{{ATOM}}}entry") == []
