"""Measure labs one after another, on one core."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from bot.results.store.store import ResultsStore
from tests.signal.generate import lab_of
from tests.signal.replay import Clock, Replay
from tests.signal.score import Score, score_of
from tests.tables import with_tables

LABS_OF_STORE = 100
"""Labs that share a database, each with a repository of its own."""
IN_MEMORY = Path("/dev/shm")


def measure(seeds: Iterable[int]) -> Score:
    """Return the combined score of all labs of some seeds."""
    score, seed_list = Score(), list(seeds)
    for start in range(0, len(seed_list), LABS_OF_STORE):
        clock = Clock()
        place = IN_MEMORY if IN_MEMORY.is_dir() else None
        with (
            tempfile.TemporaryDirectory(dir=place) as folder,
            closing(ResultsStore(with_tables(f"sqlite:///{folder}/results.db"), clock=clock)) as store,
        ):
            store.open()
            for seed in seed_list[start : start + LABS_OF_STORE]:
                lab = lab_of(seed)
                score.add(score_of(lab, asyncio.run(Replay(store, lab, clock).arrivals())))
    return score
