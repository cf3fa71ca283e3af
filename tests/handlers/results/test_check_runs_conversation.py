"""What people see of hardware results, and what the check run's buttons do."""

from __future__ import annotations

from typing import Any

import pytest

from bot.app.features import CODEC
from bot.results.compare.ancestors import MOST_ASKED
from handlers.results.check_runs import ALL_NAME
from handlers.results.effects import RequestCheckRun
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import CHECK, MATMUL, TILE, Labs, configured
from tests.results.reported import ABOUT

COMPARE = "/repos/{owner}/{repo}/compare/{basehead}"


async def test_the_first_run_of_a_lab_has_nothing_to_compare_with(labs: Labs) -> None:
    check = await labs.checked(labs.commit())
    assert (check.title, check.conclusion) == ("First run, nothing to compare with · 3 passed", "success")
    assert check.external_id == "run-operators"


async def test_a_new_failure_is_reported_with_its_location_and_how_to_reproduce_it(labs: Labs) -> None:
    base = labs.commit()
    labs.upload(base, MATMUL)
    check = await labs.checked(labs.commit(3), TILE)
    assert (check.title, check.conclusion) == ("1 new failure, 1 fixed · 2 passed", "neutral")
    assert [(sent["path"], sent["start_line"]) for sent in check.annotations] == [("tests/test_tile.py", 3)]
    page = f"{labs.world.github.url}/{FULL_NAME}/commit/{base}"
    assert f"Compared with [`{base[:10]}`]({page})" in (check.summary or "")
    assert f"pytest {TILE}" in (check.summary or "")
    assert "`@example-lab-ci`" in (check.summary or "")


async def test_results_are_compared_with_the_nearest_ancestor_whatever_arrived_last(labs: Labs) -> None:
    older, newer, now = labs.commit(), labs.commit(), labs.commit()
    later = labs.commit()
    for sha, failed in ((newer, (TILE,)), (older, ()), (later, ())):
        labs.upload(sha, *failed)
    assert (await labs.checked(now, TILE)).title == "1 failure confirmed · 2 passed"


async def test_a_failure_is_confirmed_by_a_second_failing_run_in_a_row(labs: Labs) -> None:
    titles = []
    for failed in ((), (TILE,), (TILE, MATMUL), (TILE, MATMUL), (TILE, MATMUL)):
        check = await labs.checked(labs.commit(), *failed)
        titles.append((str(check.title).partition(" · ")[0], check.conclusion))
    assert titles == [
        ("First run, nothing to compare with", "success"),
        ("1 new failure", "neutral"),
        ("1 new failure, 1 failure confirmed", "neutral"),
        ("1 failure confirmed, 1 still failing", "success"),
        ("Nothing changed, 2 still failing", "success"),
    ]


async def test_a_confirmed_failure_is_marked_and_comes_first(labs: Labs) -> None:
    for failed in ((TILE,), (TILE, MATMUL)):
        labs.upload(labs.commit(), *failed)
    text = (await labs.checked(labs.commit(), TILE, MATMUL)).text or ""
    rows = [line for line in text.splitlines() if line.startswith(("| `tests/test_matmul", "| `tests/test_tile"))]
    assert rows[0].startswith(f"| `{MATMUL}` | by this run | `wrong` | since ")
    assert rows[1].startswith(f"| `{TILE}` |  | `wrong` | since ")


async def test_a_pull_request_confirms_no_failure_of_the_nightly_branch(labs: Labs) -> None:
    for failed in ((), (TILE,)):
        base = labs.commit()
        labs.upload(base, *failed)
    check = await labs.checked(labs.commit(onto=base), TILE, pull=42)
    assert check.title == "Nothing changed, 1 still failing · 2 passed"


@pytest.mark.no_cover
@pytest.mark.parametrize("gap", [1, 49, 50, 400, 1_001, 2_000])
async def test_a_failure_is_confirmed_whatever_the_number_of_commits_between_the_runs(labs: Labs, gap: int) -> None:
    labs.upload(labs.commit())
    for asked in (1, 1):
        now = labs.commit(gap)
        labs.world.github.requests.clear()
        check = await labs.checked(now, TILE)
        assert labs.world.github.requests.count("GET", COMPARE) == asked
    assert check.title == "1 failure confirmed · 2 passed"


@pytest.mark.no_cover
async def test_after_a_reset_of_the_branch_results_are_compared_with_a_remaining_commit(labs: Labs) -> None:
    """The removed commits cost one request: the check runs of their time stored which of them contains which."""
    ancestor = labs.commit()
    await labs.checked(ancestor)
    for _ in range(12):
        await labs.checked(labs.commit(), TILE, MATMUL)
    reset = labs.commit(onto=ancestor)
    labs.world.github.requests.clear()
    assert (await labs.checked(reset, TILE)).title == "1 new failure · 2 passed"
    assert labs.world.github.requests.count("GET", COMPARE) == 1


@pytest.mark.parametrize("removed", [3, 30])
async def test_the_number_of_requests_for_removed_commits_is_limited(labs: Labs, removed: int) -> None:
    older, ancestor = labs.commit(), labs.commit()
    labs.upload(older)
    labs.upload(ancestor)
    for _ in range(removed):
        labs.upload(labs.commit(), TILE, MATMUL)
    reset = labs.commit(onto=ancestor)
    labs.world.github.requests.clear()
    assert (await labs.checked(reset, TILE)).title == "1 new failure · 2 passed"
    assert labs.world.github.requests.count("GET", COMPARE) <= MOST_ASKED


async def test_a_commit_that_github_no_longer_has_is_not_an_ancestor(labs: Labs) -> None:
    labs.upload(labs.commit())
    labs.upload("a" * 40, TILE)
    assert (await labs.checked(labs.commit(), TILE)).title == "1 new failure · 2 passed"


async def test_each_suite_has_its_own_baseline(labs: Labs) -> None:
    first, second = labs.commit(), labs.commit()
    labs.upload(first, TILE, suite="codegen")
    labs.upload(second, suite="operators")
    now = labs.commit()
    labs.upload(now, suite="codegen")
    check = await labs.checked(now, MATMUL)
    assert check.title == "1 new failure, 1 fixed · 5 passed"
    assert "; see the table." in (check.summary or "")


async def test_an_incomplete_run_is_shown_as_such_and_not_compared(labs: Labs) -> None:
    check = await labs.checked(labs.commit(), TILE, total=4)
    assert (
        check.title
        == "Incomplete: 1 of 4 shards of operators · First run, nothing to compare with, 1 failing · 2 passed"
    )
    assert (check.status, check.conclusion) == ("completed", "neutral")
    assert (await labs.checked(labs.commit())).title == "First run, nothing to compare with · 3 passed"


async def test_the_files_of_a_commit_are_requested_only_for_annotations(labs: Labs) -> None:
    await labs.checked(labs.commit(), TILE)
    labs.world.github.requests.clear()
    await labs.checked(labs.commit(), TILE)
    repo = "/repos/{owner}/{repo}"
    assert labs.world.github.requests.counts() == {
        f"GET {repo}/compare/{{basehead}}": 1,
        f"GET {repo}/commits/{{ref}}/check-runs": 1,
        f"POST {repo}/check-runs": 1,
    }


async def test_a_check_takes_three_reads_and_one_write(labs: Labs) -> None:
    await labs.checked(labs.commit())
    labs.world.github.requests.clear()
    await labs.checked(labs.commit(), TILE)
    repo = "/repos/{owner}/{repo}"
    assert labs.world.github.requests.counts() == {
        f"GET {repo}/compare/{{basehead}}": 1,
        f"GET {repo}/git/trees/{{tree_sha}}": 1,
        f"GET {repo}/commits/{{ref}}/check-runs": 1,
        f"POST {repo}/check-runs": 1,
    }


async def test_unknown_results_get_no_check(labs: Labs) -> None:
    sha = labs.commit()
    await labs.pending(sha)
    assert labs.world.repository.check_runs(sha, CHECK) == []


@pytest.mark.parametrize(
    "labs_keys", [{"other-lab": {"targets": [ABOUT.target]}}, {ABOUT.lab: {"targets": ["adreno"]}}]
)
async def test_the_check_of_a_target_removed_from_app_yaml_stays_as_it_is(
    labs: Labs, labs_keys: dict[str, Any]
) -> None:
    sha = labs.commit()
    labs.upload(sha, TILE)
    labs.world.configure(configured(labs_keys))
    await labs.pending(sha)
    assert labs.world.repository.check_runs(sha, CHECK) == []
    assert labs.why == ("app.yaml no longer has target hexagon-v73 of lab example-lab; its check run stays as it is")


async def test_people_with_write_access_can_ignore_failures_of_a_pull_request(labs: Labs) -> None:
    base = labs.commit()
    labs.upload(base)
    first = labs.commit(onto=base)
    check = await labs.press(await labs.checked(first, TILE, pull=42), "octocat", "ignore")
    assert (check.title, check.conclusion) == ("1 new failure ignored by octocat · 2 passed", "success")
    assert check.annotations == []
    assert f"for `#42` by `octocat` at `{first[:10]}`" in (check.summary or "")


async def test_ignored_failures_stay_ignored_on_later_commits_and_other_failures_are_not(labs: Labs) -> None:
    base = labs.commit()
    labs.upload(base)
    await labs.press(await labs.checked(labs.commit(onto=base), TILE, pull=42), "octocat", "ignore")
    later = await labs.checked(labs.commit(onto=base), TILE, pull=42)
    assert (later.title, later.conclusion) == ("1 new failure ignored by octocat · 2 passed", "success")
    anew = await labs.checked(labs.commit(onto=base), TILE, MATMUL, pull=42)
    assert (anew.title, anew.conclusion) == ("1 new failure, 1 new failure ignored by octocat · 1 passed", "neutral")
    other = await labs.checked(labs.commit(onto=base), TILE, pull=43)
    assert other.conclusion == "neutral"


async def test_the_check_says_that_somebody_lacks_write_access(labs: Labs) -> None:
    labs.upload(labs.commit())
    check = await labs.press(await labs.checked(labs.commit(), TILE, pull=42), "hubot", "ignore")
    assert (check.title, check.conclusion) == ("1 new failure · 2 passed", "neutral")
    assert "`hubot` asked to ignore these failures" in (check.summary or "")
    assert "asked to ignore" not in ((await labs.press(check, "hubot", "re-check")).summary or "")


@pytest.mark.parametrize(("app", "asked"), [("ours", [ABOUT.target, "adreno"]), ("another", [])])
async def test_a_rerun_of_our_check_suite_reruns_each_check(labs: Labs, app: str, asked: list[str]) -> None:
    sha, other = labs.commit(), labs.commit()
    for commit, target in ((sha, ABOUT.target), (sha, "adreno"), (other, "unseen")):
        labs.upload(commit, target=target)
    github, repository = labs.world.github, labs.world.repository
    (ours,) = github.apps.values()
    await labs.world.happen()
    repository.check_suite(ours if app == "ours" else github.actions_app, sha).rerequest("hubot")
    waiting = [message for message in github.webhooks.held if message.body.get("action") == "rerequested"]
    effects = [effect for message in waiting for effect in await labs.world.planned(message, ALL_NAME)]
    assert [CODEC.decode(effect.effect) for effect in effects] == [
        RequestCheckRun(ABOUT.lab, target, sha) for target in sorted(asked)
    ]


async def test_a_request_for_a_check_run_is_handled_once(labs: Labs) -> None:
    ask = RequestCheckRun(ABOUT.lab, ABOUT.target, labs.commit())
    assert [(await labs.world.apply_alone(ask)).changed for _ in range(2)] == [True, False]


@pytest.mark.parametrize("button", ["", "re-check"])
async def test_a_rerun_check_is_computed_and_written_again(labs: Labs, button: str) -> None:
    older, now = labs.commit(), labs.commit()
    check = await labs.checked(now, TILE)
    again = await labs.press(check, "hubot", button)
    assert again.id != check.id
    assert again.title == check.title
    labs.upload(older)
    assert (await labs.press(again, "hubot", button)).title == "1 new failure · 2 passed"
