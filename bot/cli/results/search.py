"""`nightjar results search`: search by hand for the commit with which tests began to fail, or a measurement changed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import click
from nightjar_lab.cli.options import SHA

from bot.app.load import load_config
from bot.app.serve import open_bot
from bot.cli.results import texts
from bot.cli.support import (
    AS_WRITTEN,
    REPOSITORY,
    config_option,
    env_file_option,
    is_free,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.config.environment import Settings
from bot.core.errors import UserError
from bot.core.events import Repository
from bot.engine.internal import announce
from bot.github.pull_heads import find_repository_id
from handlers.device_tests.targets import named_targets
from handlers.results.config import LAB_RESULTS
from handlers.searches.effects import SEARCH_EVENT, SearchEvent
from handlers.searches.records import SearchRequest


@click.group(
    epilog=f"""{AS_WRITTEN}
    Example:
      nightjar results search start --help
    """,
)
def search() -> None:
    """Search for the commit with which tests began to fail, or a measurement changed."""


@search.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results search start tests/test_ops.py::test_add --suite operators \\
          --target example-lab/hexagon-v73 \\
          --good 1f0c2a9d5e8b47630c1f9a2b8d4e6f7015c3a9b2 --bad 8d3e5b71c9a04f62e7b8d1350a9c2f4e6b7d8091
      nightjar results search start tests/test_ops.py::test_add --measurement latency ...
    """,
)
@click.argument("tests", metavar="TEST...", nargs=-1, required=True)
@click.option("--suite", required=True, help="The suite that has the tests.")
@click.option("--target", "targets", multiple=True, required=True, help="LAB/TARGET. Repeat it for several targets.")
@click.option("--good", type=SHA, required=True, help="The commit at which the tests passed.")
@click.option("--bad", type=SHA, required=True, help="A later commit of the branch, at which they fail.")
@click.option(
    "--measurement", default="", help="What the TEST measures, as in latency: search for the commit of its change."
)
@click.option("--repo", "--repository", "repository", type=REPOSITORY, help="OWNER/NAME. Default: the only one.")
@config_option
@json_option
@env_file_option()
def start(
    tests: tuple[str, ...],
    suite: str,
    targets: tuple[str, ...],
    good: str,
    bad: str,
    measurement: str,
    repository: str | None,
    config_path: Path,
    as_json: bool,
) -> None:
    """Run tests at commits between two, on idle devices, until it is known with which of them they began to fail.

    With --measurement, one test is run until it is known with which commit its number changed: --good and --bad are
    then `good` and `since` of the change in `nightjar results measurements --json`. A server on the same database does
    the search, within the budget of `searches`. The same request is searched once. The answer is in the issue about the
    target's regressions.
    """
    tests = tuple(sorted(set(tests)))
    if measurement and len(tests) > 1:
        raise click.UsageError(texts.ONE_MEASURING_TEST.format(count=len(tests)))
    request = SearchRequest(suite, tests, targets, good, bad, measurement)
    with stopping_at_faults():
        event, waits = asyncio.run(_start(repository, request, config_path))
    click.echo(json.dumps({"search": event.id}) if as_json else texts.SEARCH_REQUESTED.format(id=event.id))
    if waits:
        click.echo(texts.SEARCH_WAITS, err=True)


async def _start(only: str | None, request: SearchRequest, config_path: Path) -> tuple[SearchEvent, bool]:
    """Announce the search; also return whether no server is there to do it. Raises `UserError`.

    The targets of the request are as somebody named them.
    """
    config, settings = load_config(config_path), Settings.from_environment()
    start_logging(settings)
    with_results = dict(config.configured.with_feature(LAB_RESULTS))
    chosen = [name for name in with_results if only is None or name.lower() == only.lower()]
    if len(chosen) != 1:
        raise UserError(texts.UNKNOWN_REPOSITORY.format(repository=only) if only else texts.NAME_A_REPOSITORY)
    named = named_targets(with_results[chosen[0]], request.targets)
    if unknown := (*named.unknown, *named.nightly):
        raise UserError(texts.NO_REQUESTS.format(targets=", ".join(unknown)))
    request = replace(request, targets=tuple(sorted(target.full_name for target in named.targets)))
    async with open_bot(config, settings) as bot:
        services = bot.services
        event = SearchEvent.start(request, services.now())
        repository_id = await find_repository_id(services.records, services.github_for, chosen[0])
        await announce(services.announce, SEARCH_EVENT, Repository(repository_id, chosen[0], None), event)
        return event, is_free(bot.engine.database)
