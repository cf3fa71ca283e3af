"""How often the probabilities of a search for a culprit are right, over real git repositories and a real pytest.

`python -m benchmarks.search_calibration [--repositories 50] [--commits 300] [--json]` makes repositories of many
commits, each with one that breaks a test, some that cannot be imported, and a test that may fail before as well. It
searches each of them on two devices in turn. After each run it notes the likeliest commit and its probability. Progress
goes to the standard error.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import click
import pytest

from bot.core.docs import table
from bot.results.culprit.posterior import SearchRun
from bot.results.culprit.rates import FailureCounts
from bot.results.culprit.search import SearchOutcome, SearchRange, search_step
from tests.conversations.search_repository import TEST_FILE, BrokenRepository, broken_repository

DEVICES = ("phone", "board")
RATES = (0.0, 0.05, 0.1, 0.2, 0.3)
"""How often the test fails before the planted commit."""
UNREADABLE = 5
HISTORY = 60
BUDGET = 200
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
PASSED, FAILED = 0, 1
"""The exit statuses of pytest that say something: https://docs.pytest.org/en/stable/reference/exit-codes.html."""
HEADER = ("probability of the likeliest commit", "statements", "right", "promised")


@dataclass(frozen=True, slots=True)
class Statement:
    """The likeliest commit after a run, its probability, and whether it is the planted one."""

    probability: float
    is_right: bool


@dataclass(frozen=True, slots=True)
class SearchedRepository:
    """A search of one repository: what it said after each run, and how it ended. `name` is 0 if it named nobody."""

    statements: list[Statement]
    runs: int
    name: int
    culprit: int


def searched_repository(folder: Path, number: int, commits: int) -> SearchedRepository:
    """Make the repository of a number, and search it."""
    rng = Random(f"calibration {number}")
    culprit, rate = rng.randint(1, commits), rng.choice(RATES)
    not_built = set(rng.sample(range(1, commits), min(UNREADABLE, commits - 1))) - {culprit, culprit - 1}
    repository = broken_repository(folder / "repository", commits, culprit, rate=rate, not_built=not_built)
    failures = sum(rng.random() < rate for _ in range(HISTORY))
    histories = dict.fromkeys(DEVICES, FailureCounts(failures, HISTORY - failures))
    of_range = SearchRange([1 / commits] * commits, histories, {device: [device] for device in DEVICES})
    runs, unknown, statements, spent = list[SearchRun](), set[int](), list[Statement](), 0
    while True:
        device = DEVICES[spent % len(DEVICES)]
        step = search_step(of_range, runs, idle=[device], unknown=unknown, budget=BUDGET - spent)
        if spent > 1:
            probabilities = step.posterior.probabilities()
            likeliest = max(range(commits), key=probabilities.__getitem__)
            statements.append(Statement(probabilities[likeliest], likeliest + 1 == culprit))
        if step.verdict is not None:
            name = step.verdict.first if step.verdict.outcome is SearchOutcome.CULPRIT else 0
            return SearchedRepository(statements, spent, name, culprit)
        (question,) = step.questions
        spent += 1
        status = status_of_pytest(repository, question.commit, f"{device}-{number}", folder)
        if status in (PASSED, FAILED):
            counts = FailureCounts(int(status == FAILED), int(status == PASSED))
            runs.append(SearchRun(question.commit, device, counts))
        else:
            unknown.add(question.commit)


def status_of_pytest(repository: BrokenRepository, commit: int, device: str, folder: Path) -> int:
    """Run the test at a commit in a process of its own, which has imported pytest already; return its exit status."""
    with tempfile.TemporaryDirectory(dir=folder) as checkout:
        sha = repository.shas[commit]
        archive = subprocess.run(  # no argument comes from outside
            ["git", "archive", sha],
            cwd=repository.folder,
            check=True,
            capture_output=True,
        )
        subprocess.run(["tar", "-x"], cwd=checkout, check=True, input=archive.stdout)
        process = os.fork()
        if process == 0:
            # pytest collects garbage twice at its end. All objects of this process are older than its session.
            gc.freeze()
            os.environ.update(
                HOME=str(folder), NIGHTJAR_TARGET=device, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=checkout
            )
            os.chdir(checkout)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            arguments = ["-q", "-p", "no:cacheprovider", "-o", f"pythonpath={checkout}", TEST_FILE]
            os._exit(int(pytest.main(arguments)))
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def rows(statements: Sequence[Statement]) -> Iterator[tuple[str, ...]]:
    """Yield how often statements of each range of probabilities are right, beside what they promise on average."""
    for low, high in pairwise(SHARES):
        chosen = [
            statement
            for statement in statements
            if low <= statement.probability < high or statement.probability == high == 1
        ]
        if chosen:
            right = sum(item.is_right for item in chosen) / len(chosen)
            promised = sum(item.probability for item in chosen) / len(chosen)
            yield f"{low:.2f} to {high:.2f}", str(len(chosen)), f"{right:.1%}", f"{promised:.1%}"


@click.command()
@click.option("--repositories", default=50, show_default=True, help="How many repositories to search.")
@click.option("--commits", default=300, show_default=True, help="Commits of each.")
@click.option("--quick", is_flag=True, help="Search five repositories of 30 commits.")
@click.option("--json", "as_json", is_flag=True, help="Print an object for each repository.")
def main(repositories: int, commits: int, quick: bool, as_json: bool) -> None:
    """Search repositories for a planted commit, and print how often the probabilities are right."""
    if quick:
        repositories, commits = 5, 30
    searches = list[SearchedRepository]()
    for number in range(repositories):
        with tempfile.TemporaryDirectory() as folder:
            searches.append(searched_repository(Path(folder), number, commits))
        newest = searches[-1]
        progress = (number + 1, repositories, newest.runs, newest.name or "none", newest.culprit)
        click.echo("{} of {}: {} runs, named {}, planted {}".format(*progress), err=True)
        if as_json:
            click.echo(json.dumps(asdict(newest)))
    if as_json:
        return
    click.echo(table(HEADER, rows([statement for search in searches for statement in search.statements])))
    names = [search for search in searches if search.name]
    right = sum(search.name == search.culprit for search in names)
    mean = sum(search.runs for search in searches) / max(1, len(searches))
    click.echo(f"\n{right} of {len(names)} names right; {len(searches)} searches, {mean:.1f} runs on average")


if __name__ == "__main__":
    main()
