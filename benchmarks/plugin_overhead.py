"""Measure the overhead of the pytest plugin on trivial tests: unused, with declared targets, and with a report.

Each pair is a run without the plugin and one with it, one right after the other, so that other load affects both. The
two take turns in being first. Neither loads other plugins, which makes the overhead larger than in a real project.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import click

LAB = Path(__file__).parents[1] / "lab"
FILES = 100
DECLARES = (
    'from nightjar_lab.pytest import Target\n\nnightjar_targets = [Target("llvm"), Target("cuda", available=False)]\n'
)
PROJECTS = {"uses nothing": "", "declares targets": DECLARES, "writes a report": ""}
OPTIONS = {"writes a report": ("--nightjar-report", "report.jsonl")}


@dataclass(frozen=True)
class PytestCost:
    """The cost of one run, in seconds."""

    wall: float
    cpu: float


def make_project(folder: Path, tests: int, conftest: str = "") -> None:
    """Write test files whose tests do nothing."""
    tests_of_file = "".join(f"def test_{number}():\n    pass\n\n\n" for number in range(tests // FILES))
    for number in range(FILES):
        (folder / f"test_file_{number}.py").write_text(tests_of_file)
    (folder / "conftest.py").write_text(conftest)


def run_once(folder: Path, *options: str) -> PytestCost:
    """Run pytest on a folder, and measure its processor time, including its children's."""
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(LAB)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    return PytestCost(time.perf_counter() - start, cpu)


def measure_pairs(
    folder: Path, pairs: int, without: Sequence[str], with_it: Sequence[str]
) -> list[tuple[PytestCost, PytestCost]]:
    """Return the costs of pairs of runs. The first run of each kind does not count."""
    run_once(folder, *without)
    run_once(folder, *with_it)
    costs = []
    for number in range(pairs):
        if number % 2:
            second = run_once(folder, *with_it)
            costs.append((run_once(folder, *without), second))
        else:
            first = run_once(folder, *without)
            costs.append((first, run_once(folder, *with_it)))
    return costs


def share(values: Sequence[tuple[float, float]]) -> str:
    """Return how much larger the second of each pair is: median, middle half, and the ratio of the smallest."""
    shares = [100 * (with_plugin - without_plugin) / without_plugin for without_plugin, with_plugin in values]
    low, middle, high = quantiles(shares, n=4)
    least = 100 * (
        min(with_plugin for _, with_plugin in values) / min(without_plugin for without_plugin, _ in values) - 1
    )
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f}); least of each {least:+.1f} %"


@click.command()
@click.option("--tests", default=20_000, show_default=True)
@click.option("--pairs", default=7, show_default=True)
@click.option("--project", type=click.Choice(list(PROJECTS)), multiple=True, default=list(PROJECTS))
def main(tests: int, pairs: int, project: Sequence[str]) -> None:
    """Print one row each for a project that does not use the plugin, declares targets, and writes a report."""
    click.echo("| project | without, CPU | with, CPU | CPU | wall clock |\n| --- | --- | --- | --- | --- |")
    plugin = ("-p", "nightjar_lab.pytest")
    for project_name in project:
        conftest = PROJECTS[project_name]
        options = (*plugin, *OPTIONS.get(project_name, ()))
        with tempfile.TemporaryDirectory() as folder:
            make_project(Path(folder), tests, conftest)
            costs = measure_pairs(Path(folder), pairs, () if not conftest else ("--noconftest",), options)
        cpu = [(without_plugin.cpu, with_plugin.cpu) for without_plugin, with_plugin in costs]
        wall = share([(without_plugin.wall, with_plugin.wall) for without_plugin, with_plugin in costs])
        without, with_it = (median(values) for values in zip(*cpu, strict=True))
        click.echo(f"| {project_name} | {without:.2f} s | {with_it:.2f} s | {share(cpu)} | {wall} |")
    click.echo(f"\n{tests} tests, {pairs} pairs; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
