"""Whether slow tests run, what the status says, and which runs restart when they are turned on."""

import pytest

from bot.ci.base import CiRun, CiState
from bot.commands.grammar import BadCommand, Command, CommandRegistry, parse
from bot.config.shared import files_for
from bot.effects.statuses import SetStatus
from handlers.slow_tests.config import SlowTests
from handlers.slow_tests.handler import COMMANDS, SlowTestsVerdict, catch_up, decide_slow_tests, slow_tests_status
from handlers.slow_tests.records import SlowTestsChoice
from tests.settings import repository_config

SHA = "0123456789abcdef0123456789abcdef01234567"
CONFIG = SlowTests(branches=("main", "release/*"))
ON = SlowTestsChoice(on=True, by="octocat", by_id=1, at="2026-11-20T05:10:00Z")
OFF = SlowTestsChoice(on=False, by="hubot", by_id=2, at="2026-11-20T05:10:00Z")
REGISTRY = CommandRegistry([spec for spec, _ in COMMANDS])


@pytest.mark.parametrize(
    ("head_ref", "choice", "verdict"),
    [
        ("", None, SlowTestsVerdict(False, "Off: nobody requested them. To turn on, comment: @ci run slow tests")),
        ("fast", None, SlowTestsVerdict(False, "Off: nobody requested them. To turn on, comment: @ci run slow tests")),
        ("fast", ON, SlowTestsVerdict(True, "On: requested by octocat. To turn off, comment: @ci skip slow tests")),
        ("", ON, SlowTestsVerdict(True, "On: requested by octocat. To turn off, comment: @ci skip slow tests")),
        ("fast", OFF, SlowTestsVerdict(False, "Off: turned off by hubot. To turn on, comment: @ci run slow tests")),
        ("main", None, SlowTestsVerdict(True, "On: the branch main always runs slow tests.")),
        ("main", OFF, SlowTestsVerdict(True, "On: the branch main always runs slow tests.")),
        ("release/1.2", None, SlowTestsVerdict(True, "On: the branch release/1.2 always runs slow tests.")),
    ],
)
def test_whether_slow_tests_run_and_why(
    head_ref: str, choice: SlowTestsChoice | None, verdict: SlowTestsVerdict
) -> None:
    assert decide_slow_tests(CONFIG, head_ref, choice, "@ci") == verdict


def test_the_status_never_blocks_and_never_exceeds_the_limit() -> None:
    long = decide_slow_tests(CONFIG, "release/" + "x" * 247, None, "@ci")
    effect = slow_tests_status(CONFIG, SHA, long)
    assert isinstance(effect, SetStatus)
    assert (effect.context_name, effect.state, len(effect.description)) == ("ci/slow-tests", "success", 140)


def run(name: str, state: CiState, untouchable: str = "") -> CiRun:
    return CiRun("GitHub Actions", name, name, state, "", "", untouchable=untouchable)


RESTARTING = "CI had already finished on `0123456`, so I'm restarting it with slow tests: "
LEFT_ALONE = (
    "Still running, so left alone: `GPU`. If a run has already decided to skip the slow tests, restart it by name with "
    "`@ci rerun` once it has finished."
)


@pytest.mark.parametrize(
    ("runs", "patterns", "restarted", "expected_text"),
    [
        ((), ("*",), [], ""),
        (
            (run("CI", CiState.SUCCEEDED), run("Docs", CiState.FAILED)),
            ("*",),
            ["CI", "Docs"],
            f"{RESTARTING}`CI`, `Docs`.",
        ),
        (
            (run("CI", CiState.SUCCEEDED), run("GPU", CiState.RUNNING)),
            ("*",),
            ["CI"],
            f"{RESTARTING}`CI`.\n{LEFT_ALONE}",
        ),
        ((run("GPU", CiState.RUNNING),), ("*",), [], LEFT_ALONE),
        (
            (run("CI", CiState.SUCCEEDED), run("Docs", CiState.FAILED)),
            ("C*",),
            ["CI"],
            f"{RESTARTING}`CI`.",
        ),
        (
            (run("Docs", CiState.SUCCEEDED),),
            (),
            [],
            "Slow tests are on, but nothing was restarted: no finished run on `0123456` matches "
            "`slow_tests: rerun:` in `.github/nightjar.yaml` or `app.yaml`.",
        ),
        (
            (run("coverage", CiState.FAILED, untouchable="it belongs to another app"),),
            ("*",),
            [],
            "Slow tests are on, but nothing was restarted: I can't restart `coverage` on `0123456`.",
        ),
    ],
)
def test_finished_runs_restart_when_slow_tests_are_turned_on(
    runs: tuple[CiRun, ...], patterns: tuple[str, ...], restarted: list[str], expected_text: str
) -> None:
    ended, text = catch_up(runs, patterns, SHA, "@ci", files_for(repository_config(), "slow_tests", "rerun"))
    assert [run.name for run in ended] == restarted
    assert text == expected_text


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
def test_the_command_works_in_any_case(line: str, name: str) -> None:
    """TVM's bot accepted `run` but not `Run`, and crashed on a pull request without a description."""
    (command,) = parse(line, registry=REGISTRY, mentions=("@ci",))
    assert isinstance(command, Command)
    assert command.spec.name == name


@pytest.mark.parametrize("line", ["@tvm-bot slowly", "@ci slowly", "@ci run slow tests tomorrow"])
def test_words_that_only_start_like_the_command_run_nothing(line: str) -> None:
    """TVM's bot searched for a substring: `@tvm-bot slowly` ran the slow tests."""
    (command,) = parse(line, registry=REGISTRY, mentions=("@ci", "@tvm-bot"))
    assert isinstance(command, BadCommand)
