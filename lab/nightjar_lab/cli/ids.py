"""`nightjar-lab ids`: the IDs of tests as the bot names them, from reports or from what pytest collects."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from nightjar_formats.model import Case, Status
from nightjar_formats.readers import read
from nightjar_formats.refused import Refused
from nightjar_formats.runs.identity import Resolver
from nightjar_lab.cli import texts
from nightjar_lab.cli.check import format_option
from nightjar_lab.cli.errors import CommandFailed
from nightjar_lab.cli.options import AS_WRITTEN, json_option

COLLECTED = (0, 5)
"""The exit statuses of pytest after it has collected some tests, or none."""
COLLECT = (sys.executable, "-m", "nightjar_lab.pytest.collected")
LIST_FILES = ("git", "ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard", "--", ":/")


@click.command(
    short_help="List the IDs of tests as the bot names them.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar-lab ids build/*.xml             # the tests of reports
      nightjar-lab ids tests/python/relax      # the tests that pytest collects
      PYTEST_ADDOPTS="-m gpu" nightjar-lab ids tests --json
    """,
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@format_option
@json_option
def ids(paths: tuple[str, ...], format_name: str | None, as_json: bool) -> None:
    """List the IDs of tests as the bot names them, one a line, each once.

    A folder, a Python file and a node ID are collected by the pytest of this Python, which runs no test. Any other file
    is read as a report. In a checkout, the IDs begin with the test's path in the repository, as on the bot's pages and
    in NIGHTJAR_TESTS. The exit status is 1 if a report cannot be read, pytest fails, or there is no test.
    """
    reports = [Path(path) for path in paths if not is_collected(path)]
    collected = [path for path in paths if is_collected(path)]
    resolver = Resolver(repository_files())
    tests: dict[str, None] = {}
    for case in collected_cases(collected) if collected else ():
        tests[resolver.resolve(case)[0]] = None
    for path in reports:
        try:
            with path.open("rb") as file:
                tests.update((resolver.resolve(case)[0], None) for case in read(file, path.name, format_name))
        except Refused as refused:
            raise CommandFailed(str(refused)) from None
        except OSError as error:
            raise CommandFailed(f"{path}: {error.strerror}") from None
    if not tests:
        raise CommandFailed(texts.NO_IDS.format(paths=" ".join(paths)))
    if as_json:
        click.echo(json.dumps({"ids": list(tests)}, indent=2))
    else:
        click.echo("\n".join(tests))


def is_collected(path: str) -> bool:
    """Say whether pytest collects what a path names: a folder, a Python file or a node ID; the rest are reports."""
    return "::" in path or path.endswith(".py") or Path(path).is_dir()


def collected_cases(paths: Sequence[str]) -> Iterator[Case]:
    """Yield a case for each test that pytest collects. If it fails, print its output and raise `CommandFailed`."""
    with tempfile.TemporaryDirectory(prefix="nightjar-ids-") as folder:
        output = Path(folder, "ids.json")
        done = subprocess.run(  # noqa: S603
            [*COLLECT, str(output), *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode not in COLLECTED:
            click.echo(done.stdout, err=True, nl=False)
            raise CommandFailed(texts.NOT_COLLECTED.format(status=done.returncode))
        nodeids: list[str] = json.loads(output.read_text(encoding="utf-8"))  # noqa: TID251  # our own list
    for nodeid in nodeids:
        yield Case(nodeid, Status.PASSED, path=nodeid.partition("::")[0], nodeid=nodeid)


def repository_files() -> list[str] | None:
    """Return the paths of the checkout's files, those that git would add included; None outside of a checkout."""
    try:
        done = subprocess.run(LIST_FILES, capture_output=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
