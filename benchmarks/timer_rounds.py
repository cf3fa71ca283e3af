"""Simulate a round of timers of many repositories: how late each one runs, and what a run costs.

python -m benchmarks.timer_rounds --repositories 10000 --owners 10 --nightly 1000

The bot, GitHub's sandbox and their sockets are in one process, on a clock that jumps whenever everybody waits. So the
delays are those of GitHub, of its limits and of the bot's own schedule, not of this machine. The CPU time is that of
both.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from benchmarks.many_repositories import LATENCY, many_repositories
from bot.app.load import parse_config
from bot.app.serve import running
from bot.config import Config
from bot.core import logs
from bot.timers.timers import timers_of
from sandbox import GitHubSandbox
from tests.simulated_hours import SimulatedLoop, in_simulated_time

MINUTE, ROUND = 60.0, 15 * 60.0
SETTLED = 2 * ROUND
"""Seconds after the start, in which each timer has run, so that answers are in the cache."""
BRANCHES = {"last-good": "last-successful", "nightly": "nightly"}
LAST_GOOD = "last_good: {every: 15m, require: [ci]}"
NIGHTLY = 'nightly: {{at: "{at}", timezone: UTC}}'
HEAD_OF = "/repos/{name}/git/ref/heads/{branch}"


@dataclass(frozen=True, slots=True)
class TimerRound:
    """The runs of one round, by timer: how late each repository's was, in seconds.

    `requests` are those of all runs, `quota` those that GitHub counts, and `cpu` is in seconds.
    """

    late: dict[str, list[float]]
    requests: int
    quota: int
    most_a_minute: int
    cpu: float

    def text(self) -> str:
        """Return the figures in lines."""
        lines = [
            f"{name}: {len(seconds):,} runs, the latest {max(seconds, default=0):.0f} s late"
            for name, seconds in self.late.items()
        ]
        runs = sum(map(len, self.late.values()))
        lines += [
            f"{self.requests / runs:.2f} requests a run, {self.quota / runs:.2f} of the quota",
            f"at most {self.most_a_minute} a minute and installation",
            f"{1000 * self.cpu / runs:.1f} ms CPU a run, with the sandbox",
        ]
        return "\n".join(lines)


def simulated_round(folder: Path, repositories: int, owners: int, nightly: int) -> TimerRound:
    """Run a bot for three rounds and return the last one. The first `nightly` repositories have a nightly branch."""
    return in_simulated_time(lambda loop: _round(folder, loop, repositories, owners, nightly))


async def _round(folder: Path, loop: SimulatedLoop, repositories: int, owners: int, nightly: int) -> TimerRound:
    names = [f"octo-org-{number % owners}/compiler-{number}" for number in range(repositories)]
    async with many_repositories(folder, names) as many:
        for name in names:
            repository = many.github.repositories[name]
            head = repository.branch("main")
            repository.refs |= {f"refs/heads/{branch}": head for branch in BRANCHES.values()}
        many.github.faults.add("*", "*", delay=LATENCY, times=None)
        evening = datetime.fromtimestamp(loop.clock.time(), UTC) + timedelta(seconds=SETTLED + ROUND / 2)
        config = _config(names, nightly, f"{evening:%H:%M}")
        async with running(config, many.settings, None, clock=loop.clock.time):
            # Rounds begin with a minute, as timers do.
            await asyncio.sleep(SETTLED - loop.clock.time() % MINUTE)
            many.github.requests.clear()
            cpu, began = time.process_time(), loop.clock.time()
            await asyncio.sleep(ROUND)
            return _figures(many.github, config, began, time.process_time() - cpu)


def _config(names: list[str], nightly: int, at: str) -> Config:
    """Name the repositories with a nightly branch; the others are matched by a pattern for each owner."""
    key = NIGHTLY.format(at=at)
    lines = "".join(f"  {name}: {{{key}}}\n" for name in names[:nightly])
    lines += "".join(f"  {owner}/*:\n" for owner in sorted({name.partition("/")[0] for name in names}))
    return parse_config(f"defaults: {{{LAST_GOOD}}}\nrepositories:\n{lines}".encode(), "app.yaml")


def _figures(github: GitHubSandbox, config: Config, began: float, cpu: float) -> TimerRound:
    timers = {HEAD_OF.format(name=timer.repository, branch=BRANCHES[timer.name]): timer for timer in timers_of(config)}
    late, minutes = {name: list[float]() for name in BRANCHES}, Counter[tuple[str, int]]()
    records = [record for record in github.requests.records if "/git/ref/" in record.path]
    for record in records:
        moment = record.received_at.timestamp()
        minutes[record.path.split("/")[2], int((moment - began) // MINUTE)] += 1
        if timer := timers.get(record.path):
            late[timer.name].append(moment - timer.schedule.last_time(moment))
    quota = sum(record.status != 304 for record in records)
    return TimerRound(late, len(records), quota, max(minutes.values(), default=0), cpu)


@click.command(help="How late timers of many repositories run, by GitHub's limits.")
@click.option("--repositories", default=1_000, show_default=True)
@click.option("--owners", default=10, show_default=True, help="The installations among which they are spread.")
@click.option("--nightly", default=1_000, show_default=True, help="The repositories with a nightly branch.")
def main(repositories: int, owners: int, nightly: int) -> None:
    """Simulate a round, and print its figures."""
    logs.configure()
    with tempfile.TemporaryDirectory(prefix="nightjar-rounds-") as folder:
        click.echo(simulated_round(Path(folder), repositories, owners, nightly).text())


if __name__ == "__main__":
    main()
