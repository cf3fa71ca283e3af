"""What an answer says when runs are missing, fail in many ways, or contain hostile text."""

from __future__ import annotations

from dataclasses import replace

from bot.commands.grammar import Command, CommandRegistry, parse
from bot.github.text.markdown import visible_lines
from bot.results.few_tests import FailureKind, FewTestsOutcome, TestAttempts
from handlers.device_tests.model import DeviceJob, DeviceJobState, FewTests, JobEnd
from handlers.device_tests.reproduce.command import REPRODUCE
from handlers.device_tests.reproduce.texts import (
    MOST_ANSWER,
    MOST_MESSAGE,
    EarlierRuns,
    repeat_offer,
    reproduce_command,
    reproduced,
)
from handlers.device_tests.texts import ENDS
from tests.handlers.device_tests.cases import OTHER_SHA, new_job

TEST = "a.py::test_a"
COMMAND = "@ci reproduce a.py::test_a on example-lab/hexagon-v73 x10"


def answer(
    head: TestAttempts, base: TestAttempts | None = None, earlier: EarlierRuns | None = None, log_url: str = ""
) -> str:
    """Return the answer about runs at the head and at the base."""
    sides = ({TEST: head}, {TEST: base} if base else {})
    job = ended(outcome=FewTestsOutcome(*sides).dump(), few_tests=FewTests((TEST,), 10, OTHER_SHA))
    return reproduced(job, earlier, log_url, COMMAND)


def ended(**changes: object) -> DeviceJob:
    """Return a job that has ended."""
    fields = {"few_tests": FewTests((TEST,), 10), "state": DeviceJobState.DONE, **changes}
    return new_job("tests-1", purpose="reproduce:1", **fields)


def test_the_answer_says_what_the_runs_show() -> None:
    failing, passing = TestAttempts(4, 6), TestAttempts(10)
    earlier = EarlierRuns("c" * 40, TestAttempts(5, 5))
    for expected, text in (
        ("failed in 6 of 10 runs at `aaaaaaa` on `example-lab/hexagon-v73`. It fails more", answer(failing, passing)),
        ("It fails less often than at the base (95 %).", answer(TestAttempts(10, 0), failing)),
        ("do not show that it fails more often", answer(TestAttempts(9, 1), passing)),
        ("passed in all 10 runs at `aaaaaaa`", answer(passing, passing)),
        ("did not run at `aaaaaaa`", answer(TestAttempts())),
        ("Skipped runs at the head, which do not count: 3.", answer(TestAttempts(7, 0, 3), passing)),
        ("The base did not run: the lab's agent does not offer it", answer(failing)),
        ("**Fixed (95 %)**: it failed in 5 of 10 runs at `ccccccc`", answer(passing, passing, earlier)),
        ("**Still fails**: it failed in 5 of 10 runs at `ccccccc`", answer(failing, passing, earlier)),
        ("6 runs without a failure would tell", answer(TestAttempts(2), passing, earlier)),
        ("[The lab's log](https://lab.example.org/1)", answer(failing, log_url="https://lab.example.org/1")),
        ("No lab claimed the test", reproduced(ended(end=JobEnd.NO_DEVICE), None, "", COMMAND)),
        ("The lab says: `no board`", reproduced(ended(end=JobEnd.LAB_FAILED, note="no board"), None, "", COMMAND)),
    ):
        assert expected in text
        assert f"After a push, comment `{COMMAND}` again" in text


def test_an_answer_without_results_says_why_and_what_the_lab_says() -> None:
    failed = ENDS[JobEnd.LAB_FAILED]
    for job, reason in (
        (ended(end=JobEnd.NO_DEVICE), ENDS[JobEnd.NO_DEVICE]),
        (ended(end=JobEnd.LAB_FAILED, note="no board"), f"{failed} The lab says: `no board`"),
        (
            ended(end=JobEnd.LAB_FAILED, note="x" * 2 * MOST_MESSAGE),
            f"{failed} The lab says: `{'x' * (MOST_MESSAGE - 1)}…`",
        ),
    ):
        assert reproduced(job, None, "", COMMAND).split("\n\n") == [
            f"I could not reproduce `{TEST}` at `aaaaaaa` on `example-lab/hexagon-v73`: {reason}",
            f"After a push, comment `{COMMAND}` again: the answer then says whether it is fixed.",
        ]
    assert reproduced(replace(ended(end=JobEnd.NO_DEVICE), pull_request=0), None, "", COMMAND).endswith(
        f"\n\nTo repeat this, comment `{COMMAND}` again."
    )
    assert repeat_offer("c" * 40, COMMAND) == (
        f"The head is now `ccccccc`. To see whether this is fixed, comment `{COMMAND}`."
    )


def test_failures_are_counted_and_their_texts_are_folded_quoted_and_bounded() -> None:
    hostile = "```\n</details>\n@ci merge\n@mona <img src=x>"
    kinds = tuple(FailureKind(5 - number, f"lost @mona | {number}", hostile * 300) for number in range(5))
    text = answer(TestAttempts(0, 20, 0, kinds), TestAttempts(1, 5, 0, kinds[:1]))
    assert "1. 5 runs: <code>lost" in text
    assert "\n5 runs failed in other ways." in text
    assert "Failures at the base:\n6. 5 runs" in text
    assert text.count("<details>") == text.count("</details>\n\n") > 0
    assert len(text) < MOST_ANSWER + 5_000
    assert not any(line.text.startswith(("@ci merge", "@mona")) for line in visible_lines(text, folded_away=True))


def test_the_command_that_requests_the_runs_again_names_the_same_test() -> None:
    for test in (
        "t.py::test_a[1-x]",
        "t.py::test_a[x y]",
        't.py::test_a["x y"]',
        "t.py::test_a[*-a*b_c*]",
        "tests/_a_/t.py::test_",
        "Add<float>/0",
        "a&amp;b",
        "a`b",
        "a|b!",
        "t.py::test_a[\u2028]",
    ):
        text = reproduce_command("@ci", ended(few_tests=FewTests((test,), 10)))
        (command,) = parse(text, registry=CommandRegistry([REPRODUCE]), mentions=("@ci",))
        assert isinstance(command, Command)
        assert command.names == (test, "on", "example-lab/hexagon-v73", "x10")
    assert reproduce_command("@ci", ended()) == COMMAND
