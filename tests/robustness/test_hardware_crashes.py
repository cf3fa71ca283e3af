"""SIGKILL while labs' results are read, stored and told: every commit has one check run, and it says all there is."""

from __future__ import annotations

from pathlib import Path

from tests.bucket import World
from tests.robustness.crashes import Undisturbed, spread
from tests.robustness.test_crashes import killed_and_started_again

MOST_READS = 3


async def test_a_kill_before_or_after_any_check_is_written_loses_and_doubles_nothing(
    undisturbed_nights: Undisturbed, tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    points = undisturbed_nights.around_writes
    await killed_and_started_again(tmp_path, sqlite_url, undisturbed_nights, points, aws_world)


async def test_a_kill_while_the_bucket_or_github_is_read_loses_and_doubles_nothing(
    undisturbed_nights: Undisturbed, tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    points = spread(undisturbed_nights.at_reads, MOST_READS)
    await killed_and_started_again(tmp_path, sqlite_url, undisturbed_nights, points, aws_world)
