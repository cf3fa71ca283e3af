"""Whether slow tests run, what the status says, and what runs again when they are switched on."""

import pytest

from bot.ci.base import CiRun, State
from bot.commands.grammar import BadCommand, Command, Registry, parse
from bot.config import SlowTests
from bot.effects.statuses import SetStatus
from handlers.slow_tests import COMMANDS, Choice, Verdict, catch_up, decide, status

SHA = "0123456789abcdef0123456789abcdef01234567"
CONFIG = SlowTests(branches=("main", "release/*"))
ON = Choice(on=True, by="octocat", by_id=1, at="2026-11-20T05:10:00Z")
OFF = Choice(on=False, by="hubot", by_id=2, at="2026-11-20T05:10:00Z")
REGISTRY = Registry([spec for spec, _ in COMMANDS])


@pytest.mark.parametrize(
    ("head_ref", "choice", "verdict"),
    [
        ("", None, Verdict(False, "Off: nobody asked for them. To switch on, comment: @ci run slow tests")),
        ("fast", None, Verdict(False, "Off: nobody asked for them. To switch on, comment: @ci run slow tests")),
        ("fast", ON, Verdict(True, "On: asked for by octocat. To switch off, comment: @ci skip slow tests")),
        ("", ON, Verdict(True, "On: asked for by octocat. To switch off, comment: @ci skip slow tests")),
        ("fast", OFF, Verdict(False, "Off: skipped by hubot. To switch on, comment: @ci run slow tests")),
        ("main", None, Verdict(True, "On: the branch main always runs everything.")),
        ("main", OFF, Verdict(True, "On: the branch main always runs everything.")),
        ("release/1.2", None, Verdict(True, "On: the branch release/1.2 always runs everything.")),
    ],
)
def test_whether_slow_tests_run_and_why(head_ref: str, choice: Choice | None, verdict: Verdict) -> None:
    assert decide(CONFIG, head_ref, choice, "@ci") == verdict


def test_the_status_never_blocks_and_never_is_too_long() -> None:
    long = decide(CONFIG, "release/" + "x" * 247, None, "@ci")
    effect = status(CONFIG, SHA, long)
    assert isinstance(effect, SetStatus)
    assert (effect.context_name, effect.state, len(effect.description)) == ("ci/slow-tests", "success", 140)


def run(name: str, state: State, untouchable: str = "") -> CiRun:
    return CiRun("GitHub Actions", name, name, state, "", "", untouchable=untouchable)


ON_NOW = "Slow tests are on for this pull request, from `0123456` on until somebody says `@ci skip slow tests`."
LEFT = (
    "Still running, so left alone: `GPU`. Where they were past the point at which they ask, `@ci rerun` with their "
    "name runs them again once they have ended."
)


@pytest.mark.parametrize(
    ("runs", "patterns", "again", "said"),
    [
        ((), ("*",), [], ["Nothing had to be run again: CI has not begun on `0123456`, and will ask when it does."]),
        (
            (run("CI", State.SUCCEEDED), run("Docs", State.FAILED)),
            ("*",),
            ["CI", "Docs"],
            ["CI had ended on `0123456`, so this runs again with them: `CI`, `Docs`."],
        ),
        (
            (run("CI", State.SUCCEEDED), run("GPU", State.RUNNING)),
            ("*",),
            ["CI"],
            ["CI had ended on `0123456`, so this runs again with them: `CI`.", LEFT],
        ),
        ((run("GPU", State.RUNNING),), ("*",), [], [LEFT]),
        (
            (run("CI", State.SUCCEEDED), run("Docs", State.FAILED)),
            ("C*",),
            ["CI"],
            ["CI had ended on `0123456`, so this runs again with them: `CI`."],
        ),
        (
            (run("Docs", State.SUCCEEDED),),
            (),
            [],
            [
                "Nothing was run again: what ended on `0123456` is not under `slow_tests: rerun:` "
                "in `.github/nightjar.yaml` or app.yaml."
            ],
        ),
        (
            (run("coverage", State.FAILED, untouchable="belongs to another App"),),
            ("*",),
            [],
            ["Nothing was run again: what there is on `0123456` I cannot start: `coverage`."],
        ),
    ],
)
def test_what_runs_again_when_they_are_switched_on(
    runs: tuple[CiRun, ...], patterns: tuple[str, ...], again: list[str], said: list[str]
) -> None:
    ended, text = catch_up(runs, patterns, SHA, "@ci")
    assert [found.name for found in ended] == again
    assert text == "\n".join([ON_NOW, *said])


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("@ci run slow tests", "run slow tests"),
        ("@CI Run  SLOW tests", "run slow tests"),
        ("@ci slow", "run slow tests"),
        ("@ci slow tests", "run slow tests"),
        ("@ci run slow test", "run slow tests"),
        ("@ci skip slow tests", "skip slow tests"),
        ("@ci skip slow", "skip slow tests"),
    ],
)
def test_how_it_is_asked_for_in_any_case(line: str, name: str) -> None:
    """The predecessor took `run` and not `Run`, and died of a pull request without a body."""
    (command,) = parse(line, registry=REGISTRY, mentions=("@ci",))
    assert isinstance(command, Command)
    assert command.spec.name == name


@pytest.mark.parametrize("line", ["@tvm-bot slowly", "@ci slowly", "@ci run slow tests tomorrow"])
def test_words_that_only_begin_like_the_command_run_nothing(line: str) -> None:
    """The predecessor looked for the letters anywhere: `@tvm-bot slowly` ran the slow tests."""
    (command,) = parse(line, registry=REGISTRY, mentions=("@ci", "@tvm-bot"))
    assert isinstance(command, BadCommand)
