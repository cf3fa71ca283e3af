"""What the demo promises to its visitor: pages to open and things to try, each of which is checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

import aiohttp
from nightjar_formats.items import first_of

from bot.core.page_paths import help_path, pull_path, view_path
from handlers.slow_tests.config import BRANCH
from sandbox.demo import two_weeks as story
from sandbox.demo.past import OPEN_PULL
from sandbox.demo.stage import OPERATOR, REPOSITORY, DemoStage
from sandbox.model.pulls import PullRequest

COMMENT = "@ci help"
CULPRIT = "Began with <a"
MEASURED = " of "
"""What titles of issues about measurements have: `latency of …`."""
HEXAGON = f"{story.LAB}/{story.TARGET}"
PERSON = "hubot"
HIDDEN_FIELD = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


@dataclass(frozen=True)
class Promise:
    """A page, what a visitor can do there, and words that it must show."""

    title: str
    url: str
    hint: str
    words: str


def promises(demo: DemoStage) -> list[Promise]:
    """Return all that the demo prints for its visitor to open."""
    bot, github = demo.bot.url, demo.github.url
    pull = f"{github}/{REPOSITORY}/pull/{OPEN_PULL}"
    slower, lost = (f"{github}/{REPOSITORY}/issues/{_issue(demo, name)}" for name in ("latency", "delegated_nodes"))
    return [
        Promise("The dashboard", f"{bot}/", "two labs, five targets, two weeks", REPOSITORY),
        Promise("The grid", f"{bot}{view_path(REPOSITORY)}", "what broke on which night", "hexagon-v73"),
        Promise("A pull request", pull, f"comment as anybody: {COMMENT}", "<textarea"),
        Promise("What the bot did", f"{bot}{pull_path(REPOSITORY, OPEN_PULL)}", "and what it waits for", "octocat"),
        Promise("A slower kernel", slower, "since which commit, and how sure that is", "ms, +1"),
        Promise("A lost delegation", lost, "an operator left the delegate", "left the delegate"),
        Promise("A culprit", _search_url(demo), "which change broke a test, found by two devices", CULPRIT),
        Promise("A slow commit", _search_url(demo, "latency"), "which change made a kernel slower", story.SLOWER_TITLE),
        Promise(
            "The slow tests", f"{github}/{REPOSITORY}/pull/{_slow_set(demo).number}", "by cost and catches", story.LONG
        ),
        Promise("Time to fix", f"{bot}{view_path(REPOSITORY, 'fixes')}", "of regressions, by owner", "monalisa"),
        Promise(
            "Simulator and device",
            f"{bot}{view_path(REPOSITORY, 'compare/targets', target=HEXAGON)}",
            "which tests pass on one of the two only",
            f"4 tests pass on the simulator {story.LAB}/{story.SIMULATOR} and fail on the device {HEXAGON}",
        ),
        Promise(
            "On the device only",
            f"{bot}{view_path(REPOSITORY, '', status='fails-on-device-only')}",
            "what the simulator cannot find",
            "test_softmax[float16-1x128]",
        ),
        Promise("The commands", f"{bot}{help_path(REPOSITORY)}", "who can use which", "merge when green"),
        Promise("For operators", f"{bot}/operate", f"sign in as {OPERATOR}", "Sign in"),
        Promise("All commits", f"{github}/{REPOSITORY}", "of the simulated GitHub", "nightly"),
        Promise(
            "The API", f"{bot}/api/v1/repos/{REPOSITORY}/nightly", "why no newer commit is tested", "why_not_newer"
        ),
    ]


def _slow_set(demo: DemoStage) -> PullRequest:
    """Return the pull request that proposes which tests are slow."""
    return first_of(pull for pull in demo.repo.pulls if pull.head_ref == BRANCH)


def _issue(demo: DemoStage, measurement: str) -> int:
    """Return the number of the issue about a measurement that got worse, 0 if there is none."""
    issues = demo.repo.issues.items()
    return next((number for number, issue in issues if _measurement_in(issue.title) == measurement), 0)


def _measurement_in(title: str) -> str:
    """Return the measurement that an issue is about, empty if it is about none."""
    name, separator, _ = title.partition(MEASURED)
    return name if separator else ""


def _search_url(demo: DemoStage, measurement: str = "") -> str:
    """Return the page of the search to which the bot's issue about a measurement, or about failing tests, leads."""
    address = f"{demo.bot.url}{view_path(REPOSITORY, 'searches')}/"
    pattern = re.compile(rf"{re.escape(address)}[0-9a-f]+")
    issues = (issue for issue in demo.repo.issues.values() if _measurement_in(issue.title) == measurement)
    matches = (pattern.search(issue.body or "") for issue in issues)
    return next((match[0] for match in matches if match), address)


async def check_promises(demo: DemoStage) -> None:
    """Check that each promise holds: every page, a comment of another person, and the sign-in of an operator."""
    for promise in promises(demo):
        text = await demo.page(promise.url)
        demo.expect(f"{promise.title}: {promise.url}", holds=promise.words in text)
    reviewers = [user.login for user in _slow_set(demo).requested_reviewers]
    demo.expect("the owner of a slow test reviews that it is slow", holds=reviewers == ["monalisa"])
    await _comment(demo)
    await _sign_in(demo)


async def _comment(demo: DemoStage) -> None:
    pull = demo.repo.issues[OPEN_PULL]
    form = {"by": PERSON, "body": COMMENT}
    async with demo.http.post(f"{demo.github.url}/{REPOSITORY}/pull/{OPEN_PULL}", data=form) as answer:
        demo.expect("a visitor can comment as another person", holds=answer.status == 200)
    comment = pull.comments_by(PERSON)[-1]
    await demo.check("and the bot reacts", lambda: bool(pull.reactions(comment)))


async def _sign_in(demo: DemoStage) -> None:
    # The cookies of sign-in are marked `Secure`, which a browser stores from this machine without https.
    jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=demo.bot.url)
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"Accept": "text/html"}) as visitor:
        async with visitor.get(f"{demo.bot.url}/login?next=/operate") as form_page:
            fields = {unescape(name): unescape(text) for name, text in HIDDEN_FIELD.findall(await form_page.text())}
            address = form_page.url.with_query(None)
        async with visitor.post(address, data={**fields, "by": OPERATOR}) as answer:
            status, path, text = answer.status, answer.url.path, await answer.text()
    is_seen = (status, path) == (200, "/operate") and OPERATOR in text
    demo.expect(f"{OPERATOR} signs in and sees /operate", holds=is_seen)
