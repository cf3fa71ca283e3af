"""Which check run is written for what labs sent, and what its buttons do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.config import Config, parse_config
from bot.effects.base import Effect
from bot.effects.checks import AskForCheck, PutCheckRun
from bot.effects.codec import decode
from bot.effects.remember import Remember
from bot.events import Delivery, Person
from bot.github.pages import PER_PAGE
from bot.payload import Payload
from bot.results.collect import collect
from bot.results.events import CHECK_DUE
from bot.results.findings import Findings, Ignored
from bot.results.model import Case, Detail, RunKey, Seen, Status
from bot.results.report_words import title
from bot.results.state import Admission, Claims, Run, RunState
from bot.results.store import ResultsStore
from handlers import hardware_results
from handlers.hardware_results import (
    ALL_NAME,
    MOST_COMMITS,
    MOST_IGNORED,
    NAME,
    Asked,
    Press,
    as_record,
    asked_of,
    compared_with,
    decide,
    exit_status,
    is_over,
    read_ignored,
    with_confirmed,
)
from sandbox.checks import CheckRun
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.results.reported import ABOUT, AT, BASE, SHA, a_run, a_suite, compared, findings

HUBOT = Person(7, "hubot", False)
PRESSED = "2026-11-20T05:30:00Z"
KEY = "hardware-ignored:5#42:example-lab/hexagon-v73"
TILE, MATMUL = "tests/test_tile.py::test_tile", "tests/test_matmul.py::test_matmul"
CHECK = "hardware/example-lab/hexagon-v73"


def found(*tests: str, ignored: Ignored | None = None) -> Findings:
    return findings((a_suite({t: Detail() for t in tests}), compared(*tests)), pull_request=42, ignored=ignored)


def ignoring(*tests: str) -> Ignored:
    return Ignored("octocat", "c" * 40, "2026-11-19T05:00:00Z", frozenset(("operators", test) for test in tests))


def decided(known: Findings, button: str | None = None, *, may: bool = True, key: str = KEY) -> list[Effect]:
    """Return what comes of a press by somebody who sees what is known."""
    shown = (title(known), known.external_id)
    press = None if button is None else Press(button, HUBOT, PRESSED, shown)
    return list(decide(known, Asked(ABOUT, SHA, press, again=button == ""), key, 7.0, may=may).effects)


def check_of(effects: list[Effect]) -> PutCheckRun:
    check = effects[-1]
    assert isinstance(check, PutCheckRun)
    return check


def remembered(effects: list[Effect]) -> Mapping[str, Any] | None:
    first = effects[0]
    return first.value if isinstance(first, Remember) else None


@pytest.mark.parametrize(
    ("known", "button", "may", "title", "conclusion", "kept"),
    [
        (found(TILE), None, False, "1 new failure", "neutral", None),
        (found(TILE), "", False, "1 new failure", "neutral", None),
        (found(TILE), "re-check", False, "1 new failure", "neutral", None),
        (found(TILE), "ignore", False, "1 new failure", "neutral", None),
        (found(TILE), "ignore", True, "1 new failure ignored by hubot", "success", [TILE]),
        (found(), "ignore", True, "Nothing changed", "success", None),
        (found(TILE, ignored=ignoring(TILE)), None, False, "1 new failure ignored by octocat", "success", None),
        (
            found(TILE, MATMUL, ignored=ignoring(TILE)),
            None,
            False,
            "1 new failure, 1 new failure ignored by octocat",
            "neutral",
            None,
        ),
        (
            found(TILE, MATMUL, ignored=ignoring(TILE)),
            "ignore",
            True,
            "2 new failures ignored by hubot",
            "success",
            [MATMUL, TILE],
        ),
        (found(MATMUL, ignored=ignoring(TILE)), None, False, "1 new failure", "neutral", None),
    ],
)
def test_what_is_written_and_what_is_remembered(
    known: Findings, button: str | None, may: bool, title: str, conclusion: str, kept: list[str] | None
) -> None:
    effects = decided(known, button, may=may)
    check = check_of(effects)
    assert (check.name, check.sha, check.external_id) == (CHECK, SHA, "night-2")
    assert (check.content.title.partition(" · ")[0], check.content.conclusion) == (title, conclusion)
    record = remembered(effects)
    assert (record["tests"] if record else None) == ({"operators": kept} if kept else None)


def test_a_check_that_was_asked_for_again_is_written_again() -> None:
    assert check_of(decided(found(TILE), "")).again is True
    assert check_of(decided(found(TILE), "ignore")).again is False
    assert check_of(decided(found(TILE))).again is False


@pytest.mark.parametrize(
    ("known", "may", "key", "notice"),
    [
        (found(TILE), False, KEY, "That takes write permission in this repository: somebody who has it can press"),
        (found(), True, KEY, "`hubot` asked to ignore new failures, and there are none here"),
        (found(TILE), True, "", "`hubot` asked to ignore new failures, and there are none here"),
        (found(*(f"a::{n}" for n in range(MOST_IGNORED + 1))), True, KEY, "asked to ignore more than 2,000 failures"),
    ],
)
def test_who_cannot_ignore_is_told_why(known: Findings, may: bool, key: str, notice: str) -> None:
    effects = decided(known, "ignore", may=may, key=key)
    assert notice in check_of(effects).content.summary
    assert remembered(effects) is None


def test_what_is_ignored_is_kept_with_who_and_when() -> None:
    record = remembered(decided(found(TILE), "ignore"))
    assert record == {"by": "hubot", "by_id": 7, "sha": SHA, "at": PRESSED, "tests": {"operators": [TILE]}}
    kept = read_ignored(json.loads(json.dumps(record)))
    assert kept is not None
    assert as_record(kept, HUBOT) == record
    assert read_ignored(None) is None


def pressed(name: str, app: int = 9, **more: Any) -> Delivery:
    run = {"name": name, "head_sha": SHA, "external_id": "x", "app": {"id": app}}
    sender = {"id": 7, "login": "hubot", "type": "User"}
    body = {"action": "rerequested", "check_run": run, "sender": sender, "repository": {"full_name": FULL_NAME}}
    return Delivery("guid", "check_run", Payload({**body, **more}), AT)


@pytest.mark.parametrize(
    ("delivery", "asked"),
    [
        (pressed(CHECK), Asked(ABOUT, SHA, Press("", HUBOT, "2026-11-20T05:26:40Z", ("", "x")), again=True)),
        (
            pressed(CHECK, requested_action={"identifier": "re-check"}),
            Asked(ABOUT, SHA, Press("re-check", HUBOT, "2026-11-20T05:26:40Z", ("", "x")), again=True),
        ),
        (
            pressed(CHECK, requested_action={"identifier": "ignore"}),
            Asked(ABOUT, SHA, Press("ignore", HUBOT, "2026-11-20T05:26:40Z", ("", "x"))),
        ),
        (pressed(CHECK, app=8), None),
        (pressed("unit"), None),
        (pressed("software/example-lab/hexagon-v73"), None),
        (pressed("hardware/example-lab"), None),
    ],
)
def test_only_our_own_hardware_checks_are_answered(delivery: Delivery, asked: Asked | None) -> None:
    assert asked_of(delivery, 9) == asked


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        ([], None),
        ([a_run()], None),
        ([a_run(exit_status=1)], 1),
        ([a_run(exit_status=3), a_run("b", exit_status=0)], 0),
        ([a_run(exit_status=2), a_run("b", shard_index=2, exit_status=1), a_run("c", shard_index=3)], 2),
    ],
)
def test_the_exit_status_is_the_worst_of_the_last_of_each_shard(runs: list[Run], status: int | None) -> None:
    assert exit_status(replace(a_suite(), runs=tuple(runs))) == status


def test_after_the_deadline_nothing_more_is_waited_for() -> None:
    missing = findings((a_suite(shard_total=2, missing_shards=(2,)), compared())).state
    assert not is_over(missing, 60, AT + 59)
    assert is_over(missing, 60, AT + 61)
    assert not is_over(findings((a_suite(), compared())).state, 60, AT + 61)


@dataclass
class Labs:
    """A world in which a lab's results can be put into the store, and checks come due."""

    world: World
    store: ResultsStore
    commits: int = 0
    why: str = ""

    def commit(self, number: int = 1, *, onto: str | None = None) -> str:
        """Push commits to the main branch, or one to another that begins at a commit; return the last one's SHA."""
        for _ in range(number):
            self.commits += 1
            files = {"tests/test_tile.py": "pass\n" * 20, "count": str(self.commits)}
            sha = self.world.repository.push("feature" if onto else "main", files, by="octocat", onto=onto).sha
        return sha

    def upload(
        self,
        sha: str,
        *failed: str,
        pull: int | None = None,
        suite: str = "operators",
        total: int = 1,
        target: str = ABOUT.target,
    ) -> None:
        """Store a run of three tests, of which some failed."""
        admission = Admission(AT + self.commits, mainline=pull is None, pull_request=pull)
        key = RunKey(FULL_NAME, ABOUT.lab, target, sha, f"run-{suite}")
        run = Run(key, "v1", RunState.STORED, "", AT, 0, Claims(suite, shard_total=total), admission)
        tests = (TILE, MATMUL, "tests/test_ok.py::test_ok")
        cases = [Case(t, Status.FAILED if t in failed else Status.PASSED, line=3, message="wrong") for t in tests]
        self.store.put(run, collect(cases, lambda case: (case.name, case.name.partition("::")[0])))

    async def due(self, sha: str) -> None:
        """Let the check of a commit come due."""
        hardware = {"lab": ABOUT.lab, "target": ABOUT.target, "sha": sha, "revision": 1, "over": True}
        repository = {"id": self.world.repository.id, "full_name": FULL_NAME}
        body = {"action": "", "repository": repository, "hardware": hardware}
        delivery = Delivery("check:1", CHECK_DUE, Payload(body), AT)
        assert self.world.pipeline.handlers_for(delivery).handlers == (NAME,)
        planned = await self.world.pipeline.plan(delivery, NAME, "check:1")
        self.why = planned.why
        for effect in planned.effects:
            await self.world.apply_alone(decode(effect.effect))

    async def checked(self, sha: str, *failed: str, **values: Any) -> CheckRun:
        """Store a run, let its check come due, and return it."""
        self.upload(sha, *failed, **values)
        await self.due(sha)
        return self.check(sha)

    def check(self, sha: str) -> CheckRun:
        """Return the check run that is shown on a commit."""
        (run,) = self.world.repository.check_runs(sha, CHECK)
        return run

    async def press(self, run: CheckRun, by: str, button: str = "") -> CheckRun:
        """Let somebody press a button, GitHub's own *Re-run* if none is named; return what is shown then."""
        if button:
            run.press(by, button)
        else:
            run.rerequest(by)
        await self.world.happen(event="check_run")
        return self.check(run.head_sha)


def configured(labs: dict[str, Any]) -> Config:
    results = {"bucket": "device-results", "labs": labs}
    return parse_config(json.dumps({"repositories": {FULL_NAME: {"results": results}}}).encode(), "app.yaml")


@pytest.fixture
async def labs(tmp_path: Path) -> AsyncIterator[Labs]:
    lab = {"targets": [ABOUT.target], "contacts": ["@example-lab-ci"], "reproduce": "pytest {test}"}
    config = configured({ABOUT.lab: lab})
    store = ResultsStore(f"sqlite:///{tmp_path / 'nightjar.db'}")
    async with a_world(tmp_path) as world:
        world.pipeline = replace(world.pipeline, config=config, router=hardware_results.router)
        store.open()
        yield Labs(world, store)
        store.close()


async def test_the_first_run_of_a_lab_has_nothing_to_be_compared_with(labs: Labs) -> None:
    check = await labs.checked(labs.commit())
    assert (check.title, check.conclusion) == ("First run, nothing to compare with · 3 passed", "success")
    assert check.external_id == "run-operators"


async def test_what_fails_now_and_did_not_before_is_told_with_where_and_how(labs: Labs) -> None:
    base = labs.commit()
    labs.upload(base, MATMUL)
    check = await labs.checked(labs.commit(3), TILE)
    assert (check.title, check.conclusion) == ("1 new failure, 1 fixed · 2 passed", "neutral")
    assert [(sent["path"], sent["start_line"]) for sent in check.annotations] == [("tests/test_tile.py", 3)]
    page = f"{labs.world.github.url}/{FULL_NAME}/commit/{base}"
    assert f"Compared with [`{base[:10]}`]({page})" in (check.summary or "")
    assert f"pytest {TILE}" in (check.summary or "")
    assert "`@example-lab-ci`" in (check.summary or "")


async def test_it_is_compared_with_the_nearest_ancestor_whatever_came_last(labs: Labs) -> None:
    older, newer, now = labs.commit(), labs.commit(), labs.commit()
    later = labs.commit()
    for sha, failed in ((newer, (TILE,)), (older, ()), (later, ())):
        labs.upload(sha, *failed)
    assert (await labs.checked(now, TILE)).title == "1 failure confirmed, 1 still failing · 2 passed"


async def test_a_failure_is_confirmed_by_the_second_run_in_a_row_that_sees_it(labs: Labs) -> None:
    titles = []
    for failed in ((), (TILE,), (TILE, MATMUL), (TILE, MATMUL), (TILE, MATMUL)):
        check = await labs.checked(labs.commit(), *failed)
        titles.append((str(check.title).partition(" · ")[0], check.conclusion))
    assert titles == [
        ("First run, nothing to compare with", "success"),
        ("1 new failure", "neutral"),
        ("1 new failure, 1 failure confirmed, 1 still failing", "neutral"),
        ("1 failure confirmed, 2 still failing", "success"),
        ("Nothing changed, 2 still failing", "success"),
    ]


async def test_a_confirmed_failure_is_marked_and_comes_first(labs: Labs) -> None:
    for failed in ((TILE,), (TILE, MATMUL)):
        labs.upload(labs.commit(), *failed)
    text = (await labs.checked(labs.commit(), TILE, MATMUL)).text or ""
    assert f"| `{MATMUL}` | by this run | `wrong` |\n| `{TILE}` |  | `wrong` |" in text


async def test_a_pull_request_confirms_no_failure_of_the_nightly_branch(labs: Labs) -> None:
    for failed in ((), (TILE,)):
        base = labs.commit()
        labs.upload(base, *failed)
    check = await labs.checked(labs.commit(onto=base), TILE, pull=42)
    assert check.title == "Nothing changed, 1 still failing · 2 passed"


async def test_no_second_page_of_commits_is_asked_for_only_to_confirm(labs: Labs) -> None:
    labs.upload(labs.commit())
    labs.commit(PER_PAGE)
    labs.upload(labs.commit(), TILE)
    now = labs.commit()
    labs.world.github.requests.clear()
    assert (await labs.checked(now, TILE)).title == "Nothing changed, 1 still failing · 2 passed"
    assert labs.world.github.requests.count("GET", "/repos/{owner}/{repo}/commits") == 1


def test_a_failure_is_confirmed_under_its_new_name() -> None:
    def night(status: Status, folder: str) -> dict[str, Seen]:
        return {f"{folder}/test_tile.py::test_{n}": Seen(status if n == 7 else Status.PASSED) for n in range(20)}

    earlier, before = night(Status.PASSED, "tests"), night(Status.FAILED, "tests/moved")
    suite = a_suite(seen=night(Status.FAILED, "tests/again"))
    told = with_confirmed(compared_with(suite, BASE, before), suite, before, earlier)
    assert told.comparison.still_failing == ("tests/again/test_tile.py::test_7",)
    assert told.confirmed == {"tests/again/test_tile.py::test_7"}


def test_what_began_in_a_mass_of_failures_is_not_confirmed() -> None:
    def night(status: Status) -> dict[str, Seen]:
        return {f"a::{n}": Seen(status if n < 30 else Status.PASSED) for n in range(100)}

    earlier, before = night(Status.PASSED), night(Status.FAILED)
    suite = a_suite(seen=before)
    told = with_confirmed(compared_with(suite, BASE, before), suite, before, earlier)
    assert (len(told.comparison.still_failing), told.confirmed) == (30, frozenset())


async def test_each_suite_has_its_own_baseline(labs: Labs) -> None:
    first, second = labs.commit(), labs.commit()
    labs.upload(first, TILE, suite="codegen")
    labs.upload(second, suite="operators")
    now = labs.commit()
    labs.upload(now, suite="codegen")
    check = await labs.checked(now, MATMUL)
    assert check.title == "1 new failure, 1 fixed · 5 passed"
    assert "the table names it" in (check.summary or "")


async def test_an_incomplete_run_is_shown_as_such_and_nothing_is_compared_with_it(labs: Labs) -> None:
    check = await labs.checked(labs.commit(), TILE, total=4)
    assert (
        check.title
        == "Incomplete: 1 of 4 shards of operators · First run, nothing to compare with, 1 failing · 2 passed"
    )
    assert (check.status, check.conclusion) == ("completed", "neutral")
    assert (await labs.checked(labs.commit())).title == "First run, nothing to compare with · 3 passed"


async def test_the_files_of_a_commit_are_asked_for_only_where_something_is_annotated(labs: Labs) -> None:
    await labs.checked(labs.commit(), TILE)
    labs.world.github.requests.clear()
    await labs.checked(labs.commit(), TILE)
    repo = "/repos/{owner}/{repo}"
    assert labs.world.github.requests.counts() == {
        f"GET {repo}/commits": 1,
        f"GET {repo}/commits/{{ref}}/check-runs": 1,
        f"POST {repo}/check-runs": 1,
    }


async def test_a_check_takes_three_reads_and_one_write(labs: Labs) -> None:
    await labs.checked(labs.commit())
    labs.world.github.requests.clear()
    await labs.checked(labs.commit(), TILE)
    repo = "/repos/{owner}/{repo}"
    assert labs.world.github.requests.counts() == {
        f"GET {repo}/commits": 1,
        f"GET {repo}/git/trees/{{tree_sha}}": 1,
        f"GET {repo}/commits/{{ref}}/check-runs": 1,
        f"POST {repo}/check-runs": 1,
    }


async def test_nothing_is_looked_for_without_end(labs: Labs) -> None:
    old = labs.commit()
    labs.upload(old)
    now = labs.commit(MOST_COMMITS)
    assert (await labs.checked(now)).title == "First run, nothing to compare with · 3 passed"
    assert labs.world.github.requests.count("GET", "/repos/{owner}/{repo}/commits") == 10


async def test_results_that_nobody_knows_make_no_check(labs: Labs) -> None:
    sha = labs.commit()
    await labs.due(sha)
    assert labs.world.repository.check_runs(sha, CHECK) == []


@pytest.mark.parametrize("kept", [{"other-lab": {"targets": [ABOUT.target]}}, {ABOUT.lab: {"targets": ["adreno"]}}])
async def test_the_check_of_a_target_that_app_yaml_has_no_more_is_left_as_it_is(
    labs: Labs, kept: dict[str, Any]
) -> None:
    sha = labs.commit()
    labs.upload(sha, TILE)
    labs.world.pipeline = replace(labs.world.pipeline, config=configured(kept))
    await labs.due(sha)
    assert labs.world.repository.check_runs(sha, CHECK) == []
    assert labs.why == (
        "app.yaml has no target hexagon-v73 of the lab example-lab any more, so its check is left as it is"
    )


async def test_whoever_may_write_can_ignore_what_fails_for_a_pull_request(labs: Labs) -> None:
    base = labs.commit()
    labs.upload(base)
    first = labs.commit(onto=base)
    check = await labs.press(await labs.checked(first, TILE, pull=42), "octocat", "ignore")
    assert (check.title, check.conclusion) == ("1 new failure ignored by octocat · 2 passed", "success")
    assert check.annotations == []
    assert f"for `#42` by `octocat` at `{first[:10]}`" in (check.summary or "")


async def test_what_is_ignored_stays_so_on_later_commits_and_what_fails_anew_does_not(labs: Labs) -> None:
    base = labs.commit()
    labs.upload(base)
    await labs.press(await labs.checked(labs.commit(onto=base), TILE, pull=42), "octocat", "ignore")
    later = await labs.checked(labs.commit(onto=base), TILE, pull=42)
    assert (later.title, later.conclusion) == ("1 new failure ignored by octocat · 2 passed", "success")
    anew = await labs.checked(labs.commit(onto=base), TILE, MATMUL, pull=42)
    assert (anew.title, anew.conclusion) == ("1 new failure, 1 new failure ignored by octocat · 1 passed", "neutral")
    other = await labs.checked(labs.commit(onto=base), TILE, pull=43)
    assert other.conclusion == "neutral"


async def test_who_may_not_write_is_told_so_on_the_check(labs: Labs) -> None:
    labs.upload(labs.commit())
    check = await labs.press(await labs.checked(labs.commit(), TILE, pull=42), "hubot", "ignore")
    assert (check.title, check.conclusion) == ("1 new failure · 2 passed", "neutral")
    assert "`hubot` asked to ignore these failures" in (check.summary or "")
    assert "asked to ignore" not in ((await labs.press(check, "hubot", "re-check")).summary or "")


@pytest.mark.parametrize(("app", "asked"), [("ours", [ABOUT.target, "adreno"]), ("another", [])])
async def test_all_checks_of_our_own_suite_are_asked_for_again_each_by_itself(
    labs: Labs, app: str, asked: list[str]
) -> None:
    sha, other = labs.commit(), labs.commit()
    for commit, target in ((sha, ABOUT.target), (sha, "adreno"), (other, "unseen")):
        labs.upload(commit, target=target)
    github, repository = labs.world.github, labs.world.repository
    (ours,) = github.apps.values()
    await labs.world.happen()
    repository.check_suite(ours if app == "ours" else github.actions_app, sha).rerequest("hubot")
    waiting = [told for told in github.webhooks.held if told.body.get("action") == "rerequested"]
    effects = [effect for told in waiting for effect in await labs.world.planned(told, ALL_NAME)]
    assert [decode(effect.effect) for effect in effects] == [
        AskForCheck(ABOUT.lab, target, sha) for target in sorted(asked)
    ]


async def test_the_same_wish_asks_for_a_check_once(labs: Labs) -> None:
    ask = AskForCheck(ABOUT.lab, ABOUT.target, labs.commit())
    assert [(await labs.world.apply_alone(ask)).changed for _ in range(2)] == [True, False]


@pytest.mark.parametrize("button", ["", "re-check"])
async def test_asked_for_again_it_is_computed_and_written_anew(labs: Labs, button: str) -> None:
    older, now = labs.commit(), labs.commit()
    check = await labs.checked(now, TILE)
    again = await labs.press(check, "hubot", button)
    assert again.id != check.id
    assert again.title == check.title
    labs.upload(older)
    assert (await labs.press(again, "hubot", button)).title == "1 new failure · 2 passed"
