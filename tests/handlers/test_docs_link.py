"""Which status leads to a link, and how the link is built."""

from __future__ import annotations

import pytest

from bot.core.events import Delivery, Payload
from handlers.docs_link.config import DocsLink
from handlers.docs_link.feature import DocsBuild, accepts, build_of, link
from handlers.docs_link.texts import BUILT
from tests.gfm import rendered
from tests.settings import repository_config

SHA = "a" * 40
JENKINS = "https://ci.example.org/job/docs/job"


def config(text: str) -> DocsLink:
    return DocsLink(context="docs/pr-head", link=text)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{JENKINS}/PR-12/3/display/redirect", DocsBuild(12, "3")),
        (f"{JENKINS}/PR-12/3", DocsBuild(12, "3")),
        (f"{JENKINS}/PR-12/3/", DocsBuild(12, "3")),
        (f"{JENKINS}/PR-12/3?page=1#log", DocsBuild(12, "3")),
        ("https://ci.example.org/blue/organizations/jenkins/docs/detail/PR-12/3/pipeline", DocsBuild(12, "3")),
        ("http://ci.example.org/docs/PR-4294967295/1234567890/", DocsBuild(4294967295, "1234567890")),
        ("/PR-12/3/", DocsBuild(12, "3")),
    ],
)
def test_the_build_is_read_from_the_target_url(url: str, expected: DocsBuild) -> None:
    assert build_of(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        f"{JENKINS}/main/3/",
        f"{JENKINS}/PR-/3/",
        f"{JENKINS}/PR-0/3/",
        f"{JENKINS}/PR-12/",
        f"{JENKINS}/PR-12/lastBuild/",
        f"{JENKINS}/PR-12/3x/",
        f"{JENKINS}/PR-12%2F3/",
        f"{JENKINS}/XPR-12/3/",
        f"{JENKINS}?next=/PR-12/3/",
        f"{JENKINS}#/PR-12/3/",
        "https://[broken/PR-12/3/",
        f"{JENKINS}/PR-12345678901/3/",
        f"{JENKINS}/PR-12/12345678901/",
        "\N{FULLWIDTH DIGIT ONE}" * 5,
    ],
)
def test_an_address_without_a_pull_requests_build_is_ignored(url: str) -> None:
    """TVM cut the address at `PR-`, and crashed with an IndexError if there was none."""
    assert build_of(url) is None


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("https://docs.example.org/PR-{number}/{build}/index.html", "https://docs.example.org/PR-12/3/index.html"),
        ("https://docs.example.org/{sha}/", f"https://docs.example.org/{SHA}/"),
        ("https://docs.example.org/?pr={number}&sha={sha}#top", f"https://docs.example.org/?pr=12&sha={SHA}#top"),
        ("https://docs.example.org/a(b)/{build}", "https://docs.example.org/a%28b%29/3"),
        ("https://docs.example.org/latest", "https://docs.example.org/latest"),
    ],
)
def test_the_placeholders_of_the_link_are_replaced(template: str, expected: str) -> None:
    url = link(config(template), 12, "3", SHA)
    assert url == expected
    page = rendered(BUILT.format(sha="`aaaaaaa`", url=url, at="2026-11-20 05:10 UTC"))
    assert page.count("<a ") == 1
    assert f'href="{expected.replace("&", "&amp;")}"' in page


def test_a_replaced_value_stays_one_part_of_the_path() -> None:
    """A build and a SHA consist of digits; anything else must not change the rest of the address."""
    assert link(config("https://docs.example.org/{build}/x"), 1, "../..//evil?a#b", SHA) == (
        "https://docs.example.org/..%2F..%2F%2Fevil%3Fa%23b/x"
    )


@pytest.mark.parametrize(
    ("context", "state", "expected"),
    [
        ("docs/pr-head", "success", True),
        ("docs/pr-head", "pending", False),
        ("docs/pr-head", "failure", False),
        ("docs/pr-head/2", "success", False),
        ("cpu/pr-head", "success", False),
    ],
)
def test_other_statuses_get_no_job(context: str, state: str, expected: bool) -> None:
    """TVM #12902: GitHub sends every status of every commit."""
    delivery = Delivery("guid", "status", Payload({"context": context, "state": state}), 0.0)
    config_of_docs = repository_config(docs=config("https://docs.example.org/{sha}/"))
    assert accepts(delivery, config_of_docs) is expected
    assert accepts(delivery, repository_config()) is False
