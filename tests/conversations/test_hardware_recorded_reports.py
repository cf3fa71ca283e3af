"""Recorded reports of consecutive nightly runs: what their check runs say changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.bucket import World
from tests.conversations.lab import LabTown, lab_town
from tests.results.formats.samples import DATA

MERGED_GOOD, MERGED_BAD = (f"junit/pytest-two-configurations-{how}.xml" for how in ("good", "bad"))
ONE_MESSAGE_GOOD = "junit/one-message-good.xml"
HOLDERS = ("junit/unittest-error-holder.xml", "junit/unittest-error-holder-next-day.xml")


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


@pytest.mark.parametrize(
    ("reports", "conclusion", "title"),
    [
        ((MERGED_GOOD, MERGED_GOOD, MERGED_BAD), "neutral", "1 new failure · 1 passed"),
        ((ONE_MESSAGE_GOOD, "junit/boost-one-message.xml"), "neutral", "12 new failures · 1 passed"),
        ((ONE_MESSAGE_GOOD, "junit/gotestsum-one-message.xml"), "neutral", "12 new failures · 1 passed"),
        (("tap/check-good.tap", "tap/check-bad.tap"), "neutral", "1 new failure · 1 passed"),
        (HOLDERS, "success", "Nothing changed, 1 still failing · 0 passed"),
    ],
)
async def test_the_last_nightly_run_says_what_changed(
    place: LabTown, reports: Sequence[str], conclusion: str, title: str
) -> None:
    shas = [place.nightly_run() for _ in reports]
    for sha, report in zip(shas, reports, strict=True):
        place.upload(sha, {Path(report).name: (DATA / report).read_bytes()})
        await place.settle()
    check = place.check(shas[-1])
    assert (check.conclusion, check.title) == (conclusion, title)
