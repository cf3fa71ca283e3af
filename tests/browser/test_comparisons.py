"""Pages about many tests in a real browser: comparisons, and lists of flaky, slow and skipped tests."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Walk
from tests.handlers.dashboard.nightly_runs import sha

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]

HEXAGON = "target=example-lab%2Fhexagon-v73"


async def test_the_page_of_changes_between_two_commits(walk: Walk) -> None:
    page = await walk.go(f"/r/octocat/compiler/compare?{HEXAGON}&base={sha(9)}&head={sha(13)}")
    assert "6\nnew failures" in page
    await walk.seen("compare", colors=True)
    assert "test_softmax" not in await walk.follow("✓ 1")


async def test_the_page_of_flaky_tests_with_their_proof(walk: Walk) -> None:
    assert "3 commits" in await walk.go("/r/octocat/compiler/flaky")
    await walk.seen("flaky")
    assert "◆ Flaky" in await walk.follow("test_rpc_3")
    assert f"example-lab/hexagon-v73 at {sha(11)[:7]}" in await walk.follow(sha(11)[:7])


async def test_links_alone_lead_from_the_first_page_to_the_proof_of_a_flaky_test(walk: Walk) -> None:
    await walk.go("/")
    await walk.follow("octocat/compiler")
    await walk.follow("Flaky")
    assert "failed and passed on one commit in 3 runs" in await walk.follow("test_rpc_3")
    proof = walk.page.locator(".note", has_text="Proof").get_by_role("link").first
    commit = await proof.inner_text()
    await proof.click()
    await walk.page.wait_for_load_state()
    assert f"at {commit}" in await walk.page.inner_text("h1")
    await walk.page.get_by_role("link", name="octocat/compiler").click()
    await walk.page.wait_for_load_state()
    assert not walk.complaints


async def test_the_page_of_slow_tests(walk: Walk) -> None:
    assert "The slowest tests" in await walk.go("/r/octocat/compiler/slow?q=conv2d")
    await walk.seen("slow")


async def test_the_page_of_skipped_tests(walk: Walk) -> None:
    assert "nowhere" in await walk.go("/r/octocat/compiler/skipped?q=conv2d")
    await walk.seen("skipped")
