"""`/r/{owner}/{repo}/nightly`: where the branch is, and why it is at no newer commit."""

from __future__ import annotations

import pytest

from tests.handlers.dashboard.nightly_runs import sha
from tests.handlers.dashboard.site import DashboardSite

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGE = "/r/octocat/compiler/nightly"


async def test_it_says_where_the_branch_is_and_why_it_is_at_no_newer_commit(site: DashboardSite) -> None:
    status, _, page = await site.get(PAGE)
    assert status == 200
    assert f"https://github.com/octocat/compiler/compare/{sha(12)}...{sha(13)}" in page
    for expected in (
        "✗ red",
        "… pending",
        "? missing",
        "<code>lint</code> missing",
        "and 4 more",
        "none of the 3 newest",
    ):
        assert expected in page
    assert page.count("not moved by the bot") == 1
    assert "The last 14 moves" in page


async def test_a_title_is_escaped(site: DashboardSite) -> None:
    _, _, page = await site.get(PAGE)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;" in page


@pytest.mark.parametrize(
    ("repository", "expected"),
    [
        ("octocat/new", "nightjar timer run nightly --repo octocat/new"),
        ("octocat/docs", "The bot moves no nightly branch in octocat/docs"),
    ],
)
async def test_without_a_move_it_says_what_to_do(site: DashboardSite, repository: str, expected: str) -> None:
    status, _, page = await site.get(f"/r/{repository}/nightly")
    assert status == 200
    assert expected in page


async def test_the_page_of_a_private_repository_is_not_found(site: DashboardSite) -> None:
    assert (await site.get("/r/octocat/secret/nightly"))[0] == 404
