"""A hundred nights of two targets whose numbers tell a story: a latency that rose, and an operator that left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import TargetKey

from bot.results.state import CommitSummary
from bot.results.store.measurements.search import find_moves, store_moves
from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import DAY, NOW
from tests.results.uploads import LAB, REPOSITORY, Upload

NIGHTS, SLOWER, LOST = 100, 81, 91
"""The nights from which on the latency of conv2d is higher, and one of its nodes is not delegated."""
TARGETS = ("adreno", "hexagon-v73")
POOLED = 90
"""The last night of a test of the second target, in which one of its nodes was not delegated any more."""
CONV, SOFTMAX, POOL, OTHERS = "test_conv2d[xnnpack]", "test_softmax[xnnpack]", "test_pool[xnnpack]", 4
TITLE = "Lower <conv2d> in two steps"


def uploads() -> Iterator[Upload]:
    """Yield the runs of all nights: only on the first target, conv2d became slower."""
    chance = random.Random(7)
    for night in range(1, NIGHTS + 1):
        for target in TARGETS:
            is_slower = target == TARGETS[0] and night >= SLOWER
            latency = (467 if is_slower else 412) * chance.lognormvariate(0, 0.005)
            nodes = 11.0 if target == TARGETS[0] and night >= LOST else 12.0
            measured = {
                CONV: (
                    Measurement("latency", round(latency, 1), "ms", Better.LOWER),
                    Measurement("delegated_nodes", nodes, "nodes", Better.HIGHER),
                ),
                SOFTMAX: (Measurement("delegated_nodes", 3.0, "nodes", Better.HIGHER),),
                **{
                    f"test_other[{number}]": (Measurement("snr", 40.0 + chance.gauss(0, 0.1), "dB", Better.HIGHER),)
                    for number in range(OTHERS)
                },
            }
            if target == TARGETS[1] and night <= POOLED:
                pooled = 5.0 if night == POOLED else 6.0
                measured[POOL] = (Measurement("delegated_nodes", pooled, "nodes", Better.HIGHER),)
            at = NOW - (NIGHTS - night) * DAY - 11 * 3600
            yield Upload(night, dict.fromkeys(measured, "passed"), target=target, at=at, measured=measured)


def fill_measured(store: ResultsStore) -> None:
    """Store all nights."""
    for upload in uploads():
        run = upload.run
        if upload.commit == SLOWER and run.admission is not None:
            run = replace(run, admission=replace(run.admission, summary=CommitSummary(TITLE, "Mona Lisa", 41)))
        store.put(run, upload.columns)
    for target in TARGETS:
        store.write(store_moves, store.read(find_moves, TargetKey(REPOSITORY, LAB, target)))
