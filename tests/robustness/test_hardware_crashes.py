"""SIGKILL while labs are notified, and while their results are read, stored and reported.

Every commit has one check run with all results, and labs can read where the nightly branch is.
"""

from __future__ import annotations

from pathlib import Path

from tests.bucket import World
from tests.robustness.conversation import NightlyMoves
from tests.robustness.crashes import Undisturbed, spread
from tests.robustness.test_crashes import killed_and_started_again

MOST_READS = 3


async def test_a_kill_around_any_write_of_checks_or_lab_notifications_loses_and_repeats_nothing(
    undisturbed_nightly_runs: Undisturbed, tmp_path: Path, aws_world: World
) -> None:
    # tests/robustness/test_crashes.py covers what the nightly branch writes on GitHub.
    points = [
        p for p in undisturbed_nightly_runs.around_writes if p.conversation is not NightlyMoves or p.server == "s3"
    ]
    await killed_and_started_again(tmp_path, undisturbed_nightly_runs, points, aws_world)


async def test_a_kill_while_the_bucket_or_github_is_read_loses_and_repeats_nothing(
    undisturbed_nightly_runs: Undisturbed, tmp_path: Path, aws_world: World
) -> None:
    points = spread(undisturbed_nightly_runs.at_reads, MOST_READS)
    await killed_and_started_again(tmp_path, undisturbed_nightly_runs, points, aws_world)
