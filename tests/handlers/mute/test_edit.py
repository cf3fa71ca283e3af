"""An item is added to the file, and nothing else in it changes."""

from __future__ import annotations

import pytest

from bot.config.repository_file import parse_repository_file
from bot.results.settings.quarantine import QuarantinedTest
from handlers.mute.edit import item_lines, with_item
from handlers.results.config import QUARANTINE
from tests.settings import MODEL

ITEM = QuarantinedTest(
    test="tests/test_conv.py::test_conv[x: {y}]",
    targets=("example-lab/hexagon-v73",),
    owner="octocat",
    reason="\" until: '2099-01-01'} #\u2028quarantine: [] \U0001f600",
    issue="https://github.com/octocat/compiler/issues/12",
    until="2027-01-31",
)
LINES = "\n".join(item_lines(ITEM)) + "\n"
FLUSH = "\n".join(item_lines(ITEM, "")) + "\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"quarantine:\n{LINES}"),
        ("# Ours.\nskip_ci: true", f"# Ours.\nskip_ci: true\nquarantine:\n{LINES}"),
        ("quarantine: []\nskip_ci: true\n", f"quarantine:\n{LINES}skip_ci: true\n"),
        (
            "quarantine:  # Known.\n  # Old boards.\n  - test: a # why\n    owner: b\n\nskip_ci: true\n",
            f"quarantine:  # Known.\n  # Old boards.\n{LINES}  - test: a # why\n    owner: b\n\nskip_ci: true\n",
        ),
        ("quarantine:\n- {test: a}\n", f"quarantine:\n{FLUSH}- {{test: a}}\n"),
        ("skip_ci: true\r\n", f"skip_ci: true\nquarantine:\n{LINES}".replace("\n", "\r\n")),
        ("quarantine: [{test: a}]\n", None),
        ("quarantine:\n  -\n    test: a\n", None),
        ("{skip_ci: true}", None),
        ("skip_ci: true\n...\n", None),
    ],
)
def test_every_other_character_stays(before: str, after: str | None) -> None:
    assert with_item(before, ITEM) == after


def test_the_new_item_is_read_as_it_was_entered() -> None:
    edited = with_item("", ITEM)
    assert edited is not None
    assert getattr(parse_repository_file(edited.encode(), MODEL), QUARANTINE.name) == (ITEM,)
