"""What a lab reads about files that were repaired."""

from __future__ import annotations

import pytest
from nightjar_formats.readers.repairs import Repair, Repairs

from bot.results.ingest.texts import MOST_REPAIRED, repaired


def repairs_of(*kinds: Repair) -> Repairs:
    repairs = Repairs()
    for kind in kinds:
        repairs.add(kind, 7)
    return repairs


def test_each_repaired_file_has_one_sentence_with_all_its_repairs() -> None:
    both = repairs_of(Repair.BYTES, Repair.NAMELESS)
    first, second = both.sentences()
    files = {"a.xml": both, "good.xml": Repairs(), "b.xml": repairs_of(Repair.BYTES)}
    assert repaired(list(files), files.values()) == (
        f"a.xml was repaired: {first}; {second}. b.xml was repaired: {first}"
    )
    assert repaired(["good.xml"], [Repairs()]) == ""


@pytest.mark.parametrize(
    ("more", "end"), [(0, ""), (1, ". and 1 more file was repaired"), (1200, ". and 1,200 more files were repaired")]
)
def test_of_many_repaired_files_the_others_are_counted(more: int, end: str) -> None:
    repairs = repairs_of(Repair.BYTES)
    names = [f"{number}.xml" for number in range(MOST_REPAIRED + more)]
    lines = [f"{name} was repaired: {text}" for name in names[:MOST_REPAIRED] for text in repairs.sentences()]
    assert repaired(names, [repairs] * len(names)) == ". ".join(lines) + end
