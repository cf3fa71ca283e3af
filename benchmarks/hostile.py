"""Measure the cost of hostile input before and after it was bounded: `python -m benchmarks.hostile [--before COMMIT]`.

Each row runs in its own process, once with the code of that commit and once with the current code. A row that takes
longer than LIMIT is stopped.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).resolve().parent.parent
BEFORE = "d03187d"
"""The last commit before any of this input was bounded."""
LIMIT = 20
MIB = 1 << 20


Work = Callable[[], object]


def moved(old_name: str, new_name: str) -> Any:
    """Import a module from its current place, or from its place in the tree of `BEFORE`."""
    # By the folder: an editable install would find this tree's modules instead of the other's.
    [tree] = import_module("bot").__path__
    return import_module(new_name if (Path(tree) / "core").is_dir() else old_name)


def merge() -> Work:
    person = moved("bot.events", "bot.core.events").Person(5, "octocat", False)
    messages = moved("bot.merge_message", "bot.github.text.commit_message")

    commits = [messages.Commit(1, "a", "a@b", f"Co-authored-by:{' ' * 4000}x")]
    return lambda: messages.message("", [], commits, person)


def paths() -> Work:
    model = moved("bot.results.model", "nightjar_formats.model")

    files = [f"tests/{index}/test_a.py" for index in range(1500)]
    names = [".".join(["a", *["test_a"] * 20, str(index)]) for index in range(3000)]
    cases = [model.Case("test_x", model.Status.PASSED, classname=name) for name in names]
    resolver = moved("bot.results.identity", "nightjar_formats.runs.identity").Resolver
    return lambda: list(map(resolver(files).resolve, cases))


def moves() -> Work:
    renames = moved("bot.results.identity", "bot.results.compare.renames").renames

    removed = [f"old/test_a.py::test_{index}" for index in range(20_000)]
    new = [f"new/{index // 10}/test_a.py::test_{index}" for index in range(20_000)]
    return lambda: renames(removed, new)


def deep() -> Work:
    model = moved("bot.results.model", "nightjar_formats.model")

    compare = moved("bot.results.compare", "bot.results.compare.diff").compare
    folders = "/a" * 470
    current = {
        f"{index}{folders}/test_a.py::test_{index}": model.SeenTest(model.Status.PASSED) for index in range(4000)
    }
    baseline = {f"{test[:-2]}x": seen for test, seen in current.items()} | {"b.py": model.SeenTest(model.Status.FAILED)}
    return lambda: compare(current, baseline, exit_status=0)


def reworded() -> Work:
    model = moved("bot.results.model", "nightjar_formats.model")

    compare = moved("bot.results.compare", "bot.results.compare.diff").compare
    words = "_".join(["w" * 24] * 36)
    current = {f"test_a.py::test_{words}_{index}": model.SeenTest(model.Status.PASSED) for index in range(4000)}
    baseline = {test.replace("test_w", "test_v"): seen for test, seen in current.items()}
    return lambda: compare(current, baseline, exit_status=0)


def rerun() -> Work:
    from bot.ci.base import CiRun, CiRunPart, CiState

    handler = moved("handlers.rerun", "handlers.rerun.commands")
    explain = handler.explain
    name = "Linux / build {} (arm64, python 3.{}, release, sharded {})"
    parts = tuple(CiRunPart(name.format(index, index % 9, index), CiState.FAILED) for index in range(2000))
    run = CiRun("GitHub Actions", "CI", "1", CiState.FAILED, "failure", "https://ci.example.org", parts=parts)
    names = [f"Linux / buidl {index} (arm64, pyhton 3.1, relaese, shraded)" for index in range(20)]

    def work() -> object:
        arguments: tuple[Any, ...] = [run], handler.decide([run], "", names), "1" * 40, "@ci"
        return explain(*arguments[: len(signature(explain).parameters)])  # `BEFORE` lacks the last parameter

    return work


def images() -> Work:
    user_error = moved("bot.errors", "bot.core.errors").UserError
    images_file = moved("bot.docker_images", "handlers.docker_update.images")
    text = f"[jenkins]\na{' ' * 20_000}x\n"

    def work() -> object:
        with contextlib.suppress(user_error):
            images_file.read_images(text)
        return images_file._edited(text, {"a": "b"})

    return work


def frames() -> Work:
    from nightjar_formats import zstd

    refused = moved("bot.results.limits", "nightjar_formats.refused").Refused
    inflated = moved("bot.results.opening", "nightjar_formats.readers.decoding.inflate").inflated
    compress = zstd.compress
    content = compress(b"a") + compress(b"") * 1_000_000

    def work() -> object:
        with contextlib.suppress(refused):
            return inflated(io.BytesIO(content), "a.zst").read()
        return None

    return work


ROWS: dict[str, tuple[str, Callable[[], Work]]] = {
    "merge": ("a commit's message: `Co-authored-by:`, 4,000 spaces, `x`", merge),
    "paths": ("3,000 cases, 1,500 files of one name", paths),
    "moves": ("20,000 tests, each ten moved to another folder", moves),
    "deep": ("4,000 tests in 470 folders inside of each other", deep),
    "reworded": ("4,000 names of 38 long words, the first one another", reworded),
    "rerun": ("20 unknown names beside 2,000 jobs", rerun),
    "images": ("a line of 20,000 spaces in the file of images", images),
    "frames": ("1,000,000 empty frames of zstd", frames),
}


def measured(row: str, tree: Path) -> str:
    """Run a row with the code of a tree; return its seconds of processor time and the growth of its memory in MiB."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, str(Path(__file__).resolve()), "--row", row]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, check=True)
    except subprocess.TimeoutExpired:
        return f"over {LIMIT} s"
    return done.stdout.strip().rpartition("\n")[2]  # log lines may come before it


def _run(row: str) -> None:
    work = ROWS[row][1]()
    grown, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    work()
    seconds = time.process_time() - begun
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown
    click.echo(f"{seconds:.2f} s, {grown / 1024:.0f} MiB")


@click.command(help=__doc__)
@click.option("--before", "old_commit", default=BEFORE, show_default=True, help="The commit to compare with.")
@click.option("--row", type=click.Choice(sorted(ROWS)), hidden=True)
def main(old_commit: str, row: str | None) -> None:
    """Print the table, or run one row in this process."""
    if row is not None:
        _run(row)
        return
    archive = subprocess.run(
        ["git", "archive", old_commit, "bot", "handlers"], cwd=HERE, capture_output=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2 has none
            files.extractall(folder)  # of a package with a known digest
        click.echo("| input | before | after |\n| --- | --: | --: |")
        for name, (words, _) in ROWS.items():
            click.echo(f"| {words} | {measured(name, Path(folder))} | {measured(name, HERE)} |")


if __name__ == "__main__":
    main()
