"""`nightjar results explain`: why a test has its class."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from nightjar_formats.terminal import escape_controls

from bot.app.load import load_config
from bot.cli.support import (
    AS_WRITTEN,
    REPOSITORY,
    Matching,
    config_option,
    env_file_option,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.config import Config, RepositoryConfig
from bot.config.environment import DatabaseSettings
from bot.config.own_file import REPOSITORY_FILE
from bot.core.errors import UserError
from bot.core.listing import counted
from bot.core.terminal import table
from bot.core.utc import iso_utc
from bot.engine.database import Database
from bot.engine.service import Engine
from bot.github.repositories.in_force import stored_file_of, with_file
from bot.results.compare.flaky import LEAST_RUNS, Flakiness
from bot.results.compare.health import JUDGED_RUNS, RunFlips, SuiteHealth
from bot.results.compare.quarantine import quarantine_at
from bot.results.explain import texts
from bot.results.explain.explainer import Explanation, explain_test
from bot.results.explain.lookup import find_commit, find_target
from bot.results.report.texts import since_commit
from bot.results.settings.quarantine import QuarantinedTest
from bot.results.store.failures.failures import FailureMessage
from bot.results.store.history.timelines import LeftOut, TimelineRun
from bot.results.store.store import ResultsStore
from handlers.results.config import QUARANTINE, RENAMES

RUNS = 10
SHORT = 10
SHA_START = Matching(r"[0-9A-Fa-f]{4,40}", "the SHA of a commit, or at least its first 4 digits")


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results explain --test tests/te/test_tile.py::test_tile --target example-lab/adreno --sha 0d1a26e67d
      nightjar results explain --test kernel.poll.wait --target example-lab/adreno --sha 0d1a26e67d --json
    """,
)
@click.option("--test", required=True, help="The test's ID, as check runs show it.")
@click.option("--target", required=True, help="LAB/TARGET, or the name of its check run.")
@click.option("--sha", type=SHA_START, required=True, help="The commit; its first digits are enough.")
@click.option("--repo", "--repository", "repository", type=REPOSITORY, help="OWNER/NAME, if several have this target.")
@click.option("--runs", "most_runs", type=click.IntRange(1), default=RUNS, show_default=True, help="Runs to list.")
@config_option
@json_option
@env_file_option()
@click.pass_context
def explain(
    ctx: click.Context,
    test: str,
    target: str,
    sha: str,
    repository: str | None,
    most_runs: int,
    config_path: Path,
    as_json: bool,
) -> None:
    """Explain how a test's result at a commit was classified.

    Prints the class, the rule, the baseline, since when the test has failed, which messages were sent about it, and the
    runs that this follows from. Works beside a running server. Only DATABASE_URL is needed; if the configuration file
    is there, its `renames` and its `quarantine` count, and those of the repository's own file.
    """
    named = ctx.get_parameter_source("config_path") is not click.core.ParameterSource.DEFAULT
    with stopping_at_faults():
        if not (test := test.strip()):
            raise UserError(texts.NO_TEST)
        config = load_config(config_path) if named or config_path.exists() else None
        explanations = _explain(test, target, sha.lower(), repository, config)
    if as_json:
        click.echo(json.dumps([explanation_json(explanation) for explanation in explanations], indent=2))
    else:
        click.echo("\n\n".join("\n".join(explanation_lines(explanation, most_runs)) for explanation in explanations))


def _explain(test: str, target: str, sha: str, repository: str | None, config: Config | None) -> list[Explanation]:
    settings = DatabaseSettings.from_environment()
    start_logging(settings)
    url = settings.database_url.get_secret_value()
    Database(url).must_exist()
    store = ResultsStore(url)
    store.open()
    try:
        target_key = store.read(find_target, repository, target)
        commit = store.read(find_commit, target_key, sha)
        keys = config.configured.settings_if_installed(target_key.repository) if config else None
        if keys is None:
            return store.read(explain_test, target_key, commit, test)
        if keys.of(REPOSITORY_FILE):
            keys = asyncio.run(_with_own_file(url, keys, target_key.repository))
        quarantine, _ = quarantine_at(keys.of(QUARANTINE), target_key, time.time())
        return store.read(explain_test, target_key, commit, test, keys.of(RENAMES).aliases, quarantine)
    finally:
        store.close()


async def _with_own_file(url: str, keys: RepositoryConfig, repository: str) -> RepositoryConfig:
    """Return a repository's settings with those of its own file, the last valid version that the bot has stored."""
    async with Engine(url) as engine:
        return await with_file(keys, (await stored_file_of(engine.records, repository)).good.text)


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON values, with times in UTC."""
    target = explanation.target
    return {
        "repository": target.repository,
        "lab": target.lab,
        "target": target.target,
        "sha": explanation.sha,
        "suite": explanation.suite,
        "test": explanation.test,
        "class": explanation.of_class.value,
        "rule": explanation.rule,
        "baseline": asdict(explanation.baseline) if explanation.baseline else None,
        "since": explanation.since or None,
        "last_passed": explanation.good or None,
        "renamed_from": explanation.renamed_from or None,
        "flakiness": asdict(explanation.flakiness) | {"needed": explanation.flakiness.needed},
        "unreliable_since": explanation.health.since or None,
        "quarantine": _quarantine_json(explanation.quarantine) if explanation.quarantine else None,
        "runs": [asdict(run) | {"committed_at": iso_utc(run.committed_at)} for run in explanation.runs],
        "messages": [
            asdict(message)
            | {
                "reported_at": iso_utc(message.reported_at),
                "ended_at": iso_utc(message.ended_at) if message.ended else None,
            }
            for message in explanation.messages
        ],
    }


def _quarantine_json(item: QuarantinedTest) -> dict[str, str]:
    return {"owner": item.owner, "reason": item.reason, "issue": item.issue, "until": item.until}


def explanation_lines(explanation: Explanation, most_runs: int) -> Iterator[str]:
    """Yield the lines of an explanation: the test, the answer, and the runs from which it follows."""
    target = explanation.target
    yield escape_controls(explanation.test)
    yield escape_controls(
        texts.HEADING.format(
            suite=explanation.suite,
            lab=target.lab,
            target=target.target,
            sha=_short(explanation.sha),
            repository=target.repository,
        )
    )
    yield ""
    facts = list(_facts(explanation))
    width = max(len(name) for name, _ in facts)
    yield from (escape_controls(f"{name:{width}}  {text}") for name, text in facts)
    if explanation.runs:
        yield ""
        yield table(texts.RUNS_HEADER, [_row(explanation, run) for run in explanation.runs[:most_runs]])
    if len(explanation.runs) > most_runs:
        yield texts.MORE_RUNS.format(runs=counted(len(explanation.runs) - most_runs, "earlier run"))


def _facts(explanation: Explanation) -> Iterator[tuple[str, str]]:
    yield texts.CLASS, explanation.of_class.value
    yield texts.RULE, explanation.rule
    yield texts.BASELINE, _baseline(explanation)
    if explanation.since:
        words = texts.SINCE_LINE if explanation.good else texts.SINCE_NEVER
        yield texts.SINCE, words.format(since=_short(explanation.since), good=_short(explanation.good))
    if explanation.flakiness.proved or explanation.flakiness.suspected:
        yield texts.FLAKINESS, _flakiness(explanation.flakiness)
    if explanation.health.newest:
        yield texts.HEALTH, _health(explanation.health, explanation.health.newest)
    if item := explanation.quarantine:
        yield (
            texts.QUARANTINE,
            texts.QUARANTINED.format(until=item.until, owner=item.owner, reason=item.reason, issue=item.issue),
        )
    if explanation.renamed_from:
        yield texts.RENAMED, texts.RENAMED_LINE.format(name=explanation.renamed_from)
    messages = [line for message in explanation.messages for line in _message(message)] or [texts.NO_MESSAGES]
    for place, line in enumerate(messages):
        yield "" if place else texts.MESSAGES, line


def _flakiness(flakiness: Flakiness) -> str:
    few = flakiness.runs < LEAST_RUNS
    rate = texts.FLAKY_FEW if few else texts.FLAKY_RATE.format(failed=flakiness.failed, runs=flakiness.runs)
    words = texts.FLAKY_PROVED if flakiness.proved else texts.FLAKY_SUSPECTED
    return f"{rate}; {words.format(proved=flakiness.proved, suspected=flakiness.suspected)}"


def _health(health: SuiteHealth, newest: RunFlips) -> str:
    return texts.UNRELIABLE.format(
        since=since_commit(health),
        flipped=f"{newest.flipped_back:,}",
        tests=f"{newest.tests:,}",
        run=_short(newest.sha),
        needed=JUDGED_RUNS,
        stable=health.stable,
    )


def _baseline(explanation: Explanation) -> str:
    if explanation.baseline is None:
        return texts.NO_BASELINE
    run = next((run for run in explanation.runs if run.sha == explanation.baseline.sha), None)
    committed_at, outcome = (_moment(run.committed_at), _outcome(run)) if run else ("", "")
    return texts.BASELINE_LINE.format(sha=_short(explanation.baseline.sha), at=committed_at, outcome=outcome)


def _message(message: FailureMessage) -> Sequence[str]:
    words = texts.SENT if message.good else texts.SENT_NEVER_PASSED
    since, sha = _short(message.since), _short(message.reported_in)
    lines = [words.format(at=_moment(message.reported_at), since=since, sha=sha)]
    if message.ended:
        sha = _short(message.ended_in)
        lines.append(texts.ENDED.format(at=_moment(message.ended_at), how=message.ended, sha=sha))
    return lines


def _row(explanation: Explanation, run: TimelineRun) -> tuple[str, ...]:
    notes = [texts.NOTE_THIS] if run.sha == explanation.sha else []
    if explanation.baseline and run.sha == explanation.baseline.sha:
        notes.append(texts.NOTE_BASELINE)
    if run.name != explanation.test:
        notes.append(texts.NOTE_CALLED.format(name=run.name))
    if run.left_out is not LeftOut.NOTHING:
        notes.append(texts.NOTE_LEFT_OUT[run.left_out.value].format(reason=run.reason))
    return _short(run.sha), _moment(run.committed_at), _outcome(run), "; ".join(notes)


def _outcome(run: TimelineRun) -> str:
    if run.status is None:
        return texts.ABSENT if run.left_out is LeftOut.NOTHING else texts.LEFT_OUT
    return texts.FLAKY_RESULT.format(status=run.status.value) if run.flaky else run.status.value


def _short(sha: str) -> str:
    return sha[:SHORT]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
