"""Compose the first sentence of a pull request's page, and what its author may do next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.core.listing import counted
from bot.core.page_paths import help_path, run_path
from bot.engine.jobs.journal import WAITING, WORKING
from bot.engine.jobs.notes import REFUSED
from bot.web.answers import AnswerPart
from handlers.dashboard.pull.model import DeviceTest, HeadCheckRun, KnownHead, TargetResults, WaitingMerge
from handlers.dashboard.pull.story import CommandStory
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.answers import command
from handlers.device_tests.model import OPEN, DeviceJobState

TESTS_ID, COMMANDS_ID, RESULTS_ID, STORY_ID = "device-tests", "commands-given", "results", "story"
"""The IDs of the sections of the page."""
MOST_NAMED = 2
"""The most device tests that the first sentence names."""
MOST_STEPS = 3
UNSETTLED = (WAITING, WORKING)


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What the first sentence is about; `working` counts the deliveries that the bot has not finished.

    `test_commands` ask for a test on a device, by its target, and `approve_command` approves the requested ones; both
    are empty if nobody can use one now.
    """

    repository: str
    head: KnownHead | None
    merge: WaitingMerge | None
    results: Sequence[TargetResults]
    tests: Sequence[DeviceTest]
    commands: Sequence[CommandStory]
    check_runs: Sequence[HeadCheckRun]
    working: int
    test_commands: Mapping[str, str]
    approve_command: str

    @property
    def is_open(self) -> bool:
        """Whether the pull request is open, as far as we know."""
        return self.head is None or self.head.is_open

    @property
    def open_tests(self) -> list[DeviceTest]:
        """The device tests that have not ended."""
        return [test for test in self.tests if DeviceJobState(test.state) in OPEN]

    @property
    def awaited(self) -> list[TargetResults]:
        """The targets that have sent a part of their results."""
        return [results for results in self.results if not results.complete] if self.is_open else []

    @property
    def pending(self) -> bool:
        """Whether something is pending that ends by itself or by somebody's answer."""
        return bool(self.merge or self.open_tests or self.working or self.awaited)


def answer_of(facts: AnswerFacts) -> list[AnswerPart]:
    """Say what is pending and when it should be done, or that nothing is; then what the results of the head say."""
    parts = [*_closing(facts), *_pending(facts)]
    if not facts.pending:
        parts.append(AnswerPart(text=f"{texts.NOTHING_PENDING} "))
    return [*parts, *_results(facts)]


def _closing(facts: AnswerFacts) -> Iterator[AnswerPart]:
    if facts.head is None:
        yield AnswerPart(text=f"{texts.HEAD_UNKNOWN} ")
    elif not facts.head.is_open:
        merged = texts.MERGED_BY.format(login=facts.head.merged_by) if facts.head.merged_by else texts.MERGED
        moment = facts.head.merged_at
        day = texts.ON_DAY.format(moment=f"{moment:%Y-%m-%d %H:%M} UTC") if moment else ""
        yield AnswerPart(text=f"{merged if facts.head.state == 'merged' else texts.CLOSED}{day}. ")


def _pending(facts: AnswerFacts) -> Iterator[AnswerPart]:
    merge = facts.merge
    if merge is not None and merge.queued:
        yield AnswerPart(text=texts.MERGE_QUEUED.format(login=merge.by, base=merge.base))
    elif merge is not None:
        text = texts.MERGE_WAITS_FOR if merge.why else texts.MERGE_WAITS
        yield AnswerPart(text=text.format(login=merge.by, why=_plain(merge.why)))
    tests = facts.open_tests
    for test in tests[:MOST_NAMED]:
        yield AnswerPart(text=texts.TEST_PENDING.format(target=test.target), href=f"#{TESTS_ID}")
        waits = test.state == DeviceJobState.WAITING
        yield AnswerPart(text=texts.TEST_WAITS if waits else texts.TEST_STATE.format(words=_plain(test.words)))
    if (unnamed := len(tests) - MOST_NAMED) > 0:
        yield AnswerPart(text=texts.MORE_TESTS.format(count=unnamed))
    for results in facts.awaited[:MOST_NAMED]:
        yield AnswerPart(text=results.target, href=_run_path(facts, results))
        yield AnswerPart(text=texts.RESULTS_AWAITED)
    if facts.working:
        yield AnswerPart(text=texts.BOT_WORKS.format(count=counted(facts.working, "event")))


def _results(facts: AnswerFacts) -> Iterator[AnswerPart]:
    if not facts.results:
        return
    with_new_failures = [results for results in facts.results if results.new_failures]
    targets = counted(len(facts.results), "target")
    if not with_new_failures:
        yield AnswerPart(text=texts.NO_NEW_FAILURES.format(count=targets).rstrip())
        return
    count = sum(results.new_failures for results in with_new_failures)
    failures = texts.NEW_FAILURES.format(failures=counted(count, "new failure"))
    yield AnswerPart(
        text=failures, href=f"#{RESULTS_ID}" if len(with_new_failures) > 1 else _run_path(facts, with_new_failures[0])
    )
    yield AnswerPart(text=texts.ON_TARGETS.format(bad=len(with_new_failures), count=targets).rstrip())


def next_steps_of(facts: AnswerFacts) -> list[list[AnswerPart]]:
    """Return what the author may do next, each with its link or command; the most urgent first."""
    if not facts.is_open:
        return []
    return list(_steps(facts))[:MOST_STEPS] or [[AnswerPart(text=texts.ALL_COMMANDS, href=help_path(facts.repository))]]


def _steps(facts: AnswerFacts) -> Iterator[list[AnswerPart]]:
    newest = facts.commands[0] if facts.commands else None
    if newest is not None and newest.state == REFUSED and newest.command:
        words = texts.READ_REFUSAL.format(command=_plain(newest.command))
        yield [AnswerPart(text=words, href=newest.url or f"#{COMMANDS_ID}"), AnswerPart(text=texts.STEP_END)]
    check_run_urls = {check_run.name: check_run.url for check_run in facts.check_runs}
    for results in facts.results[:1]:
        if results.new_failures:
            step = [
                AnswerPart(text=texts.LOOK_AT_FAILURES.format(target=results.target), href=_run_path(facts, results))
            ]
            if url := check_run_urls.get(f"hardware/{results.target}"):
                step += [AnswerPart(text=texts.MAY_IGNORE), AnswerPart(text=texts.IGNORE_ON_CHECK, href=url)]
            yield [*step, AnswerPart(text=texts.STEP_END)]
    if facts.approve_command:
        yield [AnswerPart(text=texts.APPROVE_TESTS), command(facts.approve_command)]
    else:
        tested = {results.target for results in facts.results}
        test = next((test for target, test in facts.test_commands.items() if target not in tested), "")
        if test:
            yield [AnswerPart(text=texts.ASK_FOR_TEST), command(test)]


def _run_path(facts: AnswerFacts, results: TargetResults) -> str:
    sha = facts.head.sha if facts.head else ""
    return run_path(facts.repository, results.target, sha, results.run_id)


def _plain(text: str) -> str:
    """Return sentences of Markdown as plain text in one line, without the dot at the end."""
    lines = [line.removeprefix("- ").strip() for line in text.replace("`", "").splitlines()]
    return " ".join(filter(None, lines)).rstrip(" .")
