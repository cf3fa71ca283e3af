"""Every statement of every page about random histories is what an independent oracle says, and so are all counts.

`NIGHTJAR_HISTORIES=100` tests more of them.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nightjar_formats.model import TargetKey

from bot.core.aliases import Aliases
from bot.core.page_paths import badge_path
from bot.results.explain.classes import ResultClass
from bot.results.explain.explainer import explain_test
from bot.results.store.failures.failures import Failure, failures_of_target, store_reports
from bot.results.store.lists.flaky_tests import MOST_PROOFS
from bot.results.store.lists.slow_tests import GOOD_RUNS
from bot.results.store.store import ResultsStore
from handlers.dashboard.shared.texts import FEED_ENTRY
from tests.handlers.dashboard.random_histories import (
    DEVICE,
    FAILING,
    FILLERS,
    LAB,
    NEW_NAME,
    OLD_NAME,
    QUARANTINED,
    SIMULATOR,
    STATES,
    SUITES,
    TARGETS,
    Outcome,
    Point,
    RandomHistory,
    random_history,
    sha,
)
from tests.handlers.dashboard.site import DashboardSite, dashboard_site

HISTORIES = int(os.environ.get("NIGHTJAR_HISTORIES", "3"))
REPOSITORY = """
  {name}:
    renames: [{{from: "{old}", to: "{new}"}}]
    quarantine:
      - test: "{quarantined}"
        owner: octocat
        reason: known
        issue: https://github.com/octocat/a/issues/1
        until: "2030-01-01"
    results:
      bucket: device-results
      labs:
        example-lab: {{targets: {{adreno: {{simulates: example-lab/hexagon}}, hexagon: nightly}}}}
"""
ONE_SIDED = ("device_only", "simulator_only")
WORST_FIRST = ("new-failure", "infra", "incomplete", "still-failing", "failing-uncompared", "known-failure", "flaky")


async def test_pages_say_what_the_oracle_says(tmp_path: Path) -> None:
    histories = [random_history(f"octocat/history-{seed:03}", random.Random(seed)) for seed in range(HISTORIES)]
    names = [history.repository for history in histories]
    config = "repositories:" + "".join(
        REPOSITORY.format(name=name, old=OLD_NAME, new=NEW_NAME, quarantined=QUARANTINED) for name in names
    )

    def fill(store: ResultsStore) -> None:
        for history in histories:
            history.store(store)

    async with dashboard_site(tmp_path, config=config, public=frozenset(names), filled=fill) as site:
        for history in histories:
            pages = Pages(site, history)
            await pages.check_grid()
            await pages.check_lists()
            await pages.check_first_sentences()
            await pages.check_overview()
            await pages.check_runs()
            await pages.check_tests()
            await pages.check_comparisons()
            reported = pages.check_explanations()
            await pages.check_feed(reported)


class Pages:
    """The pages of a repository, compared with its history."""

    def __init__(self, site: DashboardSite, history: RandomHistory) -> None:
        self.site, self.history = site, history
        self.here = f"/api/v1/repos/{history.repository}"

    async def json(self, path: str) -> Any:
        """Return what the API says."""
        status, answered = await self.site.json(path)
        assert status == 200, (path, answered)
        return answered

    def point(self, target: str, suite: str, commit_sha: str) -> Point | None:
        """Return the point of a cell."""
        return self.history.points.get((target, suite, commit_sha))

    async def check_grid(self) -> None:
        """Compare cells of targets, suites, folders and tests."""
        whole = await self.json(f"{self.here}/grid")
        rows = {row["target"].partition("/")[2]: row for row in whole["rows"]}
        for target in TARGETS:
            page = await self.json(f"{self.here}/grid?target={LAB}/{target}")
            suite_cells: dict[str, list[Any]] = {}
            for row in page["rows"]:
                suite_cells[row["suite"]] = row["cells"]
                for commit, cell in zip(page["commits"], row["cells"], strict=True):
                    self.check_counts(target, row["suite"], commit["sha"], cell)
                await self.check_tests_of_suite(target, row["suite"])
            for column, commit in enumerate(whole["commits"]):
                states = (
                    {cells[column]["state"] for cells in suite_cells.values()}
                    if whole["commits"] == page["commits"]
                    else set()
                )
                if states and states.isdisjoint(("missing", "waiting", "not-run")):
                    worst = next((state for state in WORST_FIRST if state in states), "passed")
                    assert rows[target]["cells"][column]["state"] == worst, (target, commit, states)

    def check_counts(self, target: str, suite: str, commit_sha: str, cell: Any) -> None:
        """Compare the cell of a suite."""
        place = (self.history.repository, target, suite, commit_sha)
        point = self.point(target, suite, commit_sha)
        if point is None:
            assert cell["run_id"] == "", place
            return
        if point.broken:
            assert cell["state"] == "infra", place
            return
        states = Counter(self.history.state(point, test) for test in point.outcomes)
        outcomes = point.outcomes.values()
        counts = {
            status: sum(outcome.status == status for outcome in outcomes) for status in ("passed", "failed", "skipped")
        }
        counts |= {"flaky": sum(outcome.flaky for outcome in outcomes)}
        counts |= {"new": states["new-failure"], "known": states["known-failure"]}
        assert {name: cell[name] for name in counts} == counts, place
        worst = next(state for state in STATES if states[state])
        if worst != "new-failure" and not point.complete:
            worst = "incomplete"
        elif worst == "skipped":
            worst = "passed"
        assert cell["state"] == worst, place
        self.check_one_sided(point, list(point.outcomes), cell)

    def check_one_sided(self, point: Point, tests: Sequence[str], cell: Any) -> None:
        """Compare how many failures of some tests pass on the other one of the simulator and its device."""
        side, other = ONE_SIDED[:: 1 if point.target == DEVICE else -1]
        expected = sum(self.history.is_one_sided(point, test) for test in tests)
        place = (self.history.repository, point.target, point.suite, point.commit, tests)
        assert (cell[side], cell[other]) == (expected, 0), place

    async def check_tests_of_suite(self, target: str, suite: str) -> None:
        """Compare the cells of single tests and of their folders."""
        matching = await self.json(f"{self.here}/grid?target={LAB}/{target}&suite={suite}&q=::test_")
        for row in matching["rows"]:
            for commit, cell in zip(matching["commits"], row["cells"], strict=True):
                if point := self.point(target, suite, commit["sha"]):
                    expected = "infra" if point.broken else self.state_under_name(point, row["folder"])
                    assert cell["state"] == expected, (self.history.repository, target, suite, row["folder"], commit)
                    self.check_one_sided(point, [row["folder"]] * (not point.broken), cell)
        folders = await self.json(f"{self.here}/grid?target={LAB}/{target}&suite={suite}")
        for row in folders["rows"]:
            for commit, cell in zip(folders["commits"], row["cells"], strict=True):
                if (point := self.point(target, suite, commit["sha"])) and not point.broken:
                    tests = [test for test in point.outcomes if test.startswith(row["folder"])]
                    states = Counter(self.history.state(point, test) for test in tests)
                    assert (cell["known"], cell["new"]) == (states["known-failure"], states["new-failure"])
                    self.check_one_sided(point, tests, cell)

    def state_under_name(self, point: Point, name: str) -> str:
        """Return the state of a row of the grid, which is about one name of a test."""
        if name not in point.outcomes:
            return "absent" if point.complete else "incomplete"
        return self.history.state(point, name)

    async def check_lists(self) -> None:
        """Compare the lists of tests by status, and the counts that lead to them."""
        for status, states in (
            (status, (status,)) for status in ("new-failure", "still-failing", "known-failure", "skipped")
        ):
            assert await self.listed(f"status={status}") == self.history.tests_now(states), status
        assert await self.listed("status=failing") == self.history.tests_now(FAILING)
        for target, side in ((DEVICE, "device"), (SIMULATOR, "simulator")):
            assert await self.listed(f"status=fails-on-{side}-only") == {
                (f"{LAB}/{target}", suite, test)
                for suite in SUITES
                if (point := self.history.newest(target, suite)) is not None
                for test in point.outcomes
                if self.history.is_one_sided(point, test)
            }
        await self.check_flaky()
        await self.check_slow()
        skipped = await self.json(f"{self.here}/skipped")
        rows = {(skip["target"], row["suite"], row["test"]) for row in skipped["tests"] for skip in row["skipped"]}
        assert rows == self.history.tests_now(("skipped",))

    async def check_flaky(self) -> None:
        """Compare the list of flaky tests: which ones it has, their counts, and the commits that prove them."""
        rows = (await self.json(f"{self.here}/flaky?days=400"))["tests"]
        listed = {(row["target"].partition("/")[2], row["suite"], row["test"]): row for row in rows}
        proved = {
            (target, suite, test)
            for target in TARGETS
            for suite in SUITES
            for point in self.history.series(target, suite)[-1:]  # what the newest run lacks is gone
            for test in point.outcomes
            if "B" in self.history.letters(target, suite, test)
        }
        assert {place for place, row in listed.items() if row["proved"]} == proved
        for (target, suite, test), row in listed.items():
            point, letters = self.history.newest(target, suite), self.history.letters(target, suite, test)
            assert point is not None
            counts = letters.count("B"), letters.count("F"), len(letters)
            assert (row["proved"], row["failed"], row["runs"]) == counts, (target, suite, test)
            outcome = point.outcome(test)
            if outcome == Outcome("failed") and self.history.before(point):
                assert row["explains"] == self.history.explained(point, test)
            proofs = [
                sha(proof.commit)
                for proof in reversed(self.history.series(target, suite))
                if (earlier := proof.outcome(test)) is not None and earlier.flaky and earlier.status != "skipped"
            ]
            assert [proof["sha"] for proof in row["proofs"]] == proofs[: len(row["proofs"])]
            assert len(row["proofs"]) == min(len(proofs), MOST_PROOFS)

    async def check_slow(self) -> None:
        """Compare the list of slow tests: every test takes 0.1 s in these histories."""
        for target in TARGETS:
            page = await self.json(f"{self.here}/slow?target={LAB}/{target}")
            ran = {
                (suite, test)
                for suite in SUITES
                for point in self.history.series(target, suite)[-GOOD_RUNS:]
                for test, outcome in point.outcomes.items()
                if outcome.status != "skipped"
            }
            assert {(row["suite"], row["test"]) for row in page["tests"]} == ran
            assert (page["timed"], page["total"]) == (len(ran), len(ran))
            assert abs(page["minutes"] * 60 - 0.1 * len(ran)) <= 0.03 * 0.1 * len(ran)
            for row in page["tests"]:
                letters = self.history.letters(target, row["suite"], row["test"])
                if row["test"] not in (OLD_NAME, NEW_NAME):
                    assert (row["failed"], row["runs"]) == (letters.count("F"), len(letters)), (target, row)

    async def check_first_sentences(self) -> None:
        """Compare the first sentence of the grid with the lists of tests, and the page of each nightly commit."""
        page = await self.json(f"{self.here}/grid")
        sentence = "".join(part["text"] for part in page["answer"])
        listed = {status: await self.listed(f"status={status}") for status in ("new-failure", "failing")}
        late = {f"{LAB}/{target}" for target in TARGETS if self.is_stale(target)}
        new, failing = [sum(row[0] not in late for row in rows) for rows in listed.values()]
        if new:
            assert sentence.startswith(f"{new} new failure"), sentence
        elif failing:
            assert f": {failing} test" in sentence, sentence
        else:
            reported = {target for target in TARGETS if any(self.history.newest(target, suite) for suite in SUITES)}
            known = {target for target in reported if not self.is_stale(target) and not self.is_unusable(target)}
            on = f" on {len(known)} of {len(TARGETS)} targets" if known != reported else ""
            assert (f": no test fails{on}" in sentence) == bool(known), sentence
            assert ("no test fails" in sentence) == bool(known), sentence
        failed_then = Counter(row[0] for row in listed["failing"] if row[0] in late)
        assert {target: int(number) for target, number in FAILED_THEN.findall(sentence)} == failed_then, sentence
        # A list has those of all targets, so no link leads there from a number of some.
        if failed_then:
            assert not any("status=" in (part["href"] or "") for part in page["answer"]), page["answer"]
        for commit in page["commits"]:
            rows = (await self.json(f"{self.here}/commits/{commit['sha']}"))["rows"]
            assert {(row["target"].partition("/")[2], row["suite"]) for row in rows} >= {
                place[:2] for place in self.history.points if place[2] == commit["sha"]
            }
            for row in rows:
                self.check_counts(row["target"].partition("/")[2], row["suite"], commit["sha"], row["cell"])

    async def listed(self, query: str) -> set[tuple[str, str, str]]:
        """Return the target, suite and test of the rows of a filtered grid."""
        page = await self.json(f"{self.here}/grid?{query}")
        assert page["more"] == 0
        return {(row["target"], row["suite"], row["folder"]) for row in page["rows"]}

    async def check_overview(self) -> None:
        """Compare the counts of the overview and the badge, also with the rows behind their links."""
        (repository,) = (await self.json(f"/api/v1/repos?q={self.history.repository}"))["repositories"]
        for listed in repository["targets"]:
            target, query = listed["target"], f"target={LAB}/{listed['target']}"
            newest = [point for suite in SUITES if (point := self.history.newest(target, suite))]
            states = Counter(self.history.state(point, test) for point in newest for test in point.outcomes)
            failing = sum(states[state] for state in FAILING)
            assert (listed["failing"], listed["known"]) == (failing, states["known-failure"])
            assert len(await self.listed(f"status=failing&{query}")) == failing
            assert len(await self.listed(f"status=known-failure&{query}")) == listed["known"]
            assert listed["suites"] == len(newest)
            assert listed["stale"] == self.is_stale(target)
            unusable = self.is_unusable(target)
            state = (
                "stale" if listed["stale"] else "no usable results" if unusable else "failing" if failing else "passing"
            )
            assert listed["state"] == state
            badge = (await self.site.get(badge_path(self.history.repository, f"{LAB}/{target}")))[2]
            assert (f"{failing} failing" if state == "failing" else state) in badge

    def is_stale(self, target: str) -> bool:
        """Say whether the newest nightly run of a target arrived more than 36 hours ago."""
        runs = [sent for sent in self.history.runs if sent.target == target and sent.pull_request is None]
        return self.site.moment - max(sent.run.received_at for sent in runs) > 36 * 3600

    def is_unusable(self, target: str) -> bool:
        """Say whether the newest nightly commit of a target has no usable results."""
        points = [point for point in self.history.points.values() if point.target == target]
        nightly = [point for point in points if point.pull_request is None]
        newest = max(point.commit for point in nightly)
        return all(point.broken for point in nightly if point.commit == newest)

    async def check_runs(self) -> None:
        """Compare the page of each run, whose statements are those of the check run."""
        for (target, _, commit_sha), point in sorted(self.history.points.items(), key=lambda item: item[0]):
            points = [other for suite in SUITES if (other := self.point(target, suite, commit_sha))]
            run_id = point.sents[0].run.key.run_id
            page = await self.json(f"{self.here}/runs/{LAB}/{target}/{commit_sha}/{run_id}")
            kinds = Counter[str]()
            listed = sorted(page["suites"], key=lambda suite: SUITES.index(suite["suite"]))
            for suite, other in zip(listed, points, strict=True):
                of_suite = Counter(
                    self.history.kind(other, test)
                    for test, outcome in other.outcomes.items()
                    if outcome.status == "failed" or other.broken
                )
                kinds += of_suite
                names = {
                    "new": "new_failures",
                    "still failing": "still_failing",
                    "known flaky": "known_flaky",
                    "quarantined": "quarantined",
                    "nothing to compare with": "unjudged",
                }
                place = (self.history.repository, target, other.suite, commit_sha)
                assert {kind: suite[name] for kind, name in names.items()} == {
                    kind: of_suite[kind] for kind in names
                }, place
                assert bool(suite["infra"]) == other.broken, place
            counted = {
                name: sum(cause[name] for cause in page["causes"]) for name in ("new", "known", "unusable", "count")
            }
            known = kinds["quarantined"] + kinds["known flaky"]
            causes = {"new": kinds["new"], "known": known, "unusable": kinds["unusable run"], "count": kinds.total()}
            assert counted == causes, (self.history.repository, target, commit_sha)
            assert sum(kind["count"] for kind in page["failures"]) == kinds.total()
            assert sum(kind["failing"] for kind in page["failures"]) == kinds.total() - known - kinds["unusable run"]
            self.check_title(page["check"], kinds, points)

    def check_title(self, check: Any, kinds: Counter[str], points: list[Point]) -> None:
        """Compare what a check run counts in its title, and its conclusion."""
        numbers = {words: int(number) for number, words in COUNTED.findall(check["title"])}
        usable = [point for point in points if not point.broken]
        if usable and any(self.history.before(point) for point in usable):
            assert numbers.get("new failure", 0) == kinds["new"], check
            assert numbers.get("known flaky", 0) == kinds["known flaky"], check
            confirmed = int(match[1]) if (match := CONFIRMED.search(check["title"])) else 0
            assert numbers.get("still failing", 0) + confirmed == kinds["still failing"], check
        uncompared = [point for point in usable if not self.history.before(point)]
        in_first_run = any(
            self.history.kind(point, QUARANTINED) == "quarantined"
            for point in uncompared
            if QUARANTINED in point.outcomes and point.outcomes[QUARANTINED].status == "failed"
        )
        if kinds["new"] or kinds["nothing to compare with"] or in_first_run or len(usable) < len(points):
            assert check["conclusion"] == "neutral"

    async def check_tests(self) -> None:
        """Compare the history of each test."""
        tests = {test for point in self.history.points.values() for test in point.outcomes} - {*FILLERS[1:], OLD_NAME}
        for test in sorted(tests):
            page = await self.json(f"{self.here}/tests?id={quote(test, safe='')}")
            for on_target in page["targets"]:
                target, suite = on_target["target"], on_target["suite"]
                for run in on_target["runs"]:
                    if point := self.point(target, suite, run["sha"]):
                        expected = "infra" if point.broken else self.history.state(point, test)
                        place = (self.history.repository, target, suite, test, run["sha"])
                        assert run["cell"]["state"] == expected, place
                newest = self.history.newest(target, suite)
                assert newest is not None
                assert on_target["is_removed"] == (newest.outcome(test) is None), (target, suite, test)
            self.check_sentence_of_test(page)

    def check_sentence_of_test(self, page: Any) -> None:
        """Compare the first sentence of a test's page with the state of the test in the newest nightly runs."""
        sentence = "".join(part["text"] for part in page["answer"])
        places = [(on_target["target"], on_target["suite"]) for on_target in page["targets"]]
        newest = {place: point for place in places if (point := self.history.newest(*place))}
        outcomes = {place: outcome for place, point in newest.items() if (outcome := point.outcome(page["id"]))}
        # A target may run the test in two suites, or no longer in one of them.
        running = {target for target, _ in outcomes}
        failing = {target for (target, _), outcome in outcomes.items() if outcome == Outcome("failed")}
        late = {target for target in running if self.is_stale(target)}
        if not running:
            assert sentence.startswith("The newest nightly runs do not have this test"), sentence
        elif running == late:
            assert sentence.startswith("Unknown on "), sentence
        elif len(running - late) > 1:
            count = len(failing - late) or "none"
            assert sentence.startswith(f"Fails on {count} of {len(running - late)} targets"), sentence
        else:
            (target,) = running - late
            state = "Fails on" if target in failing else "Does not fail on"
            assert sentence.startswith(f"{state} {LAB}/{target}"), sentence
        assert clause_names(sentence, "unknown on ", ": no report for over 36 hours") == late, sentence
        assert clause_names(sentence, "failed when it last ran on ") == failing & late, sentence
        assert ("no longer run on" in sentence) == bool(running and {target for target, _ in newest} - running), (
            sentence
        )
        assert ("quarantined until 2030-01-01" in sentence) == bool(page["id"] == QUARANTINED and running), sentence

    async def check_comparisons(self) -> None:
        """Compare the newest run of each suite with the run that a check run compares it with."""
        for target in TARGETS:
            for suite in SUITES:
                head = self.history.newest(target, suite)
                if head is None or not self.history.before(head):
                    continue
                base = self.history.before(head)[-1]
                commits = f"base={sha(base.commit)}&head={sha(head.commit)}"
                page = await self.json(f"{self.here}/compare?target={LAB}/{target}&{commits}")
                (counts,) = (listed["counts"] for listed in page["suites"] if listed["suite"] == suite)
                failed = [test for test, outcome in head.outcomes.items() if outcome.status == "failed"]
                kinds = Counter(self.history.kind(head, test) for test in failed)
                place = (self.history.repository, target, suite)
                assert counts.get("new-failure", 0) == kinds["new"], place
                assert counts.get("still-failing", 0) == kinds["still failing"], place
                assert counts.get("quarantined", 0) == kinds["quarantined"], place
                flaky = sum(outcome.flaky and outcome.status != "failed" for outcome in head.outcomes.values())
                assert counts.get("flaky", 0) == kinds["known flaky"] + flaky, place

    async def check_feed(self, reported: Mapping[TargetKey, Sequence[Failure]]) -> None:
        """Compare the feed with failures that were reported: they failed since then, and passed before."""
        store = self.site.store
        for target, failures in reported.items():
            store.write(store_reports, target, "f" * 40, store.clock(), failures, {})
        feed = (await self.site.get(f"/r/{self.history.repository}/regressions.atom"))[2]
        titles = [unescape(title) for title in TITLE.findall(feed)]
        expected = [
            FEED_ENTRY.format(test=failure.test, target=target.full_name)
            for target, failures in reported.items()
            for failure in failures
        ]
        assert Counter(titles) == Counter(expected)
        for target, failures in reported.items():
            for failure in failures:
                series = self.history.series(target.target, failure.suite)
                outcomes = {sha(point.commit): point.outcome(failure.test) for point in series}
                place = target.full_name, failure
                assert outcomes[failure.since] == Outcome("failed"), place
                later = list(outcomes)[list(outcomes).index(failure.since) :]
                ends = [outcome.status for name in later if (outcome := outcomes[name]) is not None]
                assert "passed" not in ends, place
                good = outcomes[failure.good] if failure.good else Outcome("passed")
                assert good is not None, place
                assert good.status == "passed" or good.flaky, place

    def check_explanations(self) -> dict[TargetKey, list[Failure]]:
        """Compare the class of each failure, and which failures are due to be reported, from the newest runs.

        Return those, by target.
        """
        due: dict[TargetKey, list[Failure]] = {}
        read, aliases = self.site.store.read, Aliases([(OLD_NAME, NEW_NAME)])
        for target in TARGETS:
            key = TargetKey(self.history.repository, LAB, target)
            newest = {suite: point for suite in SUITES if (point := self.history.newest(target, suite))}
            ancestors = {
                suite: sha(earlier[-1].commit)
                for suite, point in newest.items()
                if (earlier := self.history.before(point))
            }
            reported = {
                failures.suite: failures.began for failures in read(failures_of_target, key, ancestors, aliases)
            }
            due[key] = [failure for failures in reported.values() for failure in failures]
            for suite, point in newest.items():
                failed = [test for test, outcome in point.outcomes.items() if outcome.status == "failed"]
                lasting = {test for test in failed if self.history.lasts(point, test)}
                assert {failure.test for failure in reported[suite]} == lasting, (key, suite)
                for test in failed:
                    explanations = read(explain_test, key, sha(point.commit), test, aliases)
                    (of_class,) = (explanation.of_class for explanation in explanations if explanation.suite == suite)
                    is_known = point.outcomes[test].flaky or self.history.explained(point, test)
                    place = (key, suite, test)
                    if is_known:
                        assert of_class is ResultClass.KNOWN_FLAKY, place
                    elif not self.history.before(point):
                        assert of_class is ResultClass.UNJUDGED, place
                    elif lasting.intersection([test]):
                        assert of_class in (ResultClass.REGRESSION, ResultClass.NEVER_PASSED), place
                    else:
                        last = self.history.before(point)[-1].outcome(test)
                        is_still = last is not None and last.status == "failed"
                        assert of_class is (ResultClass.STILL_FAILING if is_still else ResultClass.NEW_FAILURE), place

        return due


def clause_names(sentence: str, start: str, end: str = "") -> set[str]:
    """Return the targets that a sentence names between the words with which a clause starts and ends."""
    clauses = [clause[0].lower() + clause[1:] for clause in sentence.removesuffix(".").split("; ")]
    names = next((clause.removeprefix(start) for clause in clauses if clause.startswith(start)), "")
    return {name.partition("/")[2] for name in names.removesuffix(end).split(", ")} if names else set()


TITLE = re.compile("<entry>.*?<title>(.*?)</title>", re.DOTALL)
COUNTED = re.compile(r"(\d+) (new failure|known flaky|still failing)")
FAILED_THEN = re.compile(r"([\w-]+/[\w-]+) has not reported for [^;(]+ \((\d+) tests? failed then\)")
CONFIRMED = re.compile(r"(\d+) failures? confirmed")
