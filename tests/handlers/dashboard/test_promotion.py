"""Which targets of a lab are ready for another tier, from stored results."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot.results.settings.results import Lab
from bot.results.store.store import ResultsStore
from handlers.dashboard.labs.page import read_lab
from handlers.device_tests.degraded.rule import DegradedTarget
from handlers.tracking_branches.records import TrackingMove
from tests.results.uploads import LAB, REPOSITORY, Upload, sha
from tests.tables import with_tables

HOUR, DAY = 3600.0, 86400.0


def test_after_a_month_of_good_nightly_runs_a_target_is_ready(tmp_path: Path) -> None:
    with closing(ResultsStore(with_tables(f"sqlite:///{tmp_path}/nightjar.db"))) as store:
        store.open()
        moment = 40 * DAY
        lab = Lab.model_validate({"targets": {"adreno": {"tier": 2}, "hexagon": {"tier": 1}, "mali": "nightly"}})
        for number in range(1, 40):
            for target in ("adreno", "hexagon"):
                upload = Upload(number, {f"test_{n}": "passed" for n in range(5)}, at=number * DAY, target=target)
                run = replace(upload.run, received_at=number * DAY + HOUR)
                store.put(run, upload.columns)
        mali, adreno, hexagon = store.read(read_lab, REPOSITORY, LAB, lab, [], {}, moment, "", "").targets
        assert adreno.promotion is not None
        assert (adreno.promotion.lacking, adreno.promotion.tier, adreno.promotion.seconds_p90) == ([], 1, HOUR)
        # The evidence: a month, latency, infra rate and false-alarm rate.
        assert (adreno.promotion.days, adreno.infra, adreno.infra_of) == (39, 0, 30)
        assert (adreno.promotion.unsteady, adreno.promotion.unsteady_of) == (0, 30)
        # Promotion is never automatic: until app.yaml changes, the target tests as before.
        assert adreno.tier == lab.targets["adreno"].tier == 2
        assert (hexagon.promotion, mali.promotion) == (None, None)
        degraded = {f"{LAB}/adreno": DegradedTarget("a" * 40, 0.0, 0.0, 1, 0)}
        assert store.read(read_lab, REPOSITORY, LAB, lab, [], degraded, moment, "", "").targets[1].promotion is None
        # The branch moved half an hour after each commit: labs could not test it earlier.
        moves: list[TrackingMove] = []
        for number in range(1, 40):
            moved_at = datetime.fromtimestamp(number * DAY + HOUR / 2, UTC).isoformat()
            move = TrackingMove(
                sha=sha(number), previous_sha=None, moved_at=moved_at, found_at=moved_at, commits=None, why=""
            )
            moves.append(move)
        promotion = store.read(read_lab, REPOSITORY, LAB, lab, moves, {}, moment, "", "").targets[1].promotion
        assert promotion is not None
        assert promotion.seconds_p90 == HOUR / 2
