"""SIGKILL while labs learn what to test, and while their results are read, stored and reported.

Every commit has one check run, and it says all there is; labs read where the nightly branch is.
"""

from __future__ import annotations

from pathlib import Path

from tests.bucket import World
from tests.robustness.conversation import NightlyMoves
from tests.robustness.crashes import Undisturbed, spread
from tests.robustness.test_crashes import killed_and_started_again

MOST_READS = 3


async def test_a_kill_before_or_after_any_check_or_any_word_to_labs_is_written_loses_and_doubles_nothing(
    undisturbed_nightly_runs: Undisturbed, tmp_path: Path, aws_world: World
) -> None:
    # What the nightly branch writes on GitHub, tests/robustness/test_crashes.py has.
    points = [p for p in undisturbed_nightly_runs.around_writes if p.talk is not NightlyMoves or p.server == "s3"]
    await killed_and_started_again(tmp_path, undisturbed_nightly_runs, points, aws_world)


async def test_a_kill_while_the_bucket_or_github_is_read_loses_and_doubles_nothing(
    undisturbed_nightly_runs: Undisturbed, tmp_path: Path, aws_world: World
) -> None:
    points = spread(undisturbed_nightly_runs.at_reads, MOST_READS)
    await killed_and_started_again(tmp_path, undisturbed_nightly_runs, points, aws_world)
