"""`/r/…/runs/…`: one run, and why its check run has its conclusion."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from tests.handlers.dashboard.nightly_runs import ADRENO, BOARD, HEXAGON, TIMEOUT, Target, sha
from tests.handlers.dashboard.site import DashboardSite

pytestmark = pytest.mark.asyncio(loop_scope="session")


def address(target: Target, number: int, run_id: str) -> str:
    lab, name = target
    return f"octocat/compiler/runs/{lab}/{name.replace('@', '%40').replace(':', '%3A')}/{sha(number)}/{run_id}"


async def test_it_has_the_title_and_the_reason_of_the_check_run(site: DashboardSite) -> None:
    path = address(HEXAGON, 12, "operators-run-1")
    status, _, page = await site.get(f"/r/{path}")
    assert status == 200
    assert "<strong>Neutral</strong>" in page
    _, answered = await site.json(f"/api/v1/repos/{path}")
    assert answered["check"]["title"].startswith("3 new failures")
    assert answered["check"]["conclusion"] == "neutral"
    (operators, _) = answered["suites"]
    assert (operators["new_failures"], operators["still_failing"], operators["baseline"]) == (3, 3, sha(11))


async def test_failures_with_one_cause_are_one_entry_and_new_ones_come_first(site: DashboardSite) -> None:
    _, answered = await site.json(f"/api/v1/repos/{address(HEXAGON, 12, 'operators-run-1')}")
    new_cause, still_failing = answered["causes"]
    assert (new_cause["new"], new_cause["count"], len(new_cause["tests"])) == (3, 3, 3)
    assert new_cause["message"].startswith("IndexError")
    assert (still_failing["new"], still_failing["count"]) == (0, 3)
    assert new_cause["reproduce"].startswith("pytest 'tests/python/operators/test_gather.py::")
    # A new failure begins here; of the others the page says since when.
    assert {(test["since"], test["since_at"]) for test in new_cause["tests"]} == {("", None)}
    _, _, page = await site.get(f"/r/{address(HEXAGON, 12, 'operators-run-1')}")
    for test in still_failing["tests"]:
        assert test["since"] in {sha(number) for number in range(12)}
        assert (test["since_at"], f"/commit/{test['since']}" in page) != (None, True)


async def test_failures_are_counted_by_class(site: DashboardSite) -> None:
    path = address(HEXAGON, 12, "operators-run-1")
    _, answered = await site.json(f"/api/v1/repos/{path}")
    assert answered["failures"] == [{"happened": "failed", "count": 6, "failing": 6}]


async def test_a_broken_lab_is_not_a_failure_of_the_code(site: DashboardSite) -> None:
    _, _, page = await site.get(f"/r/{address(ADRENO, 7, 'runtime-run-1')}")
    assert "no usable results" in page
    assert TIMEOUT in page


async def test_a_refused_run_says_why(site: DashboardSite) -> None:
    status, _, page = await site.get(f"/r/{address(BOARD, 13, 'runtime-run-2')}")
    assert status == 200
    assert "te.xml is not what the manifest says" in page.replace("<wbr>", "")
    assert "there is no check run" in page


@pytest.mark.parametrize("run_id", ["nothing", "operators-run-1%2f..", "%3Cscript%3E"])
async def test_an_unknown_run_is_not_found(site: DashboardSite, run_id: str) -> None:
    assert (await site.get(f"/r/{address(HEXAGON, 12, run_id)}"))[0] == 404


async def test_its_commit_can_be_compared_with_any_other(site: DashboardSite) -> None:
    _, _, page = await site.get(f"/r/{address(HEXAGON, 13, 'operators-run-1')}")
    form = page.split('action="/r/octocat/compiler/compare"')[1].split("</form>")[0]
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    assert fields == {"target": "example-lab/hexagon-v73", "head": sha(13), "base": sha(12)[:7]}
    status, compared = await site.json(
        "/api/v1/repos/octocat/compiler/compare?" + urlencode({**fields, "base": sha(4)})
    )
    assert (status, compared["base"]["sha"], compared["head"]["sha"]) == (200, sha(4), sha(13))
