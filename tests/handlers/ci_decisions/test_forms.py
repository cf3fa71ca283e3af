"""The output for CI: only our own values, and reasons that are harmless in a shell."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from nightjar_lab.ci import texts
from nightjar_lab.ci.decision import CiDecision, CiVerdict, run_everything
from nightjar_lab.ci.forms import as_env, as_github, comments, decision_json, explained, read_answer

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
HOSTILE = "x\n$(touch broken) `touch broken` ; touch broken #' \" \\ * ? [ab] <(touch broken) && ${IFS} \u202e\u2028é"
SKIPPED = CiDecision(
    SHA, CiVerdict(False, "off"), CiVerdict(True, HOSTILE), CiVerdict(True, HOSTILE), CiVerdict(False, HOSTILE)
)


def in_a_shell(script: str, folder: Path) -> str:
    """Run a script of `sh`; its variables CI_OUT and CI_ERR hold the command's output."""
    env = {"CI_OUT": as_env(SKIPPED), "CI_ERR": "\n".join(explained(SKIPPED)) + "\n", "PATH": "/usr/bin:/bin"}
    return subprocess.run(["sh", "-c", script], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def test_the_values_are_those_of_the_decision() -> None:
    assert (
        as_env(SKIPPED)
        == "SKIP_CI=true\nDOCS_ONLY=true\nSKIP_SLOW_TESTS=true\nREBUILD_DOCKER=false\nNIGHTJAR_LEVEL=pull-request\n"
    )
    assert (
        as_github(SKIPPED)
        == f"run_slow_tests=false\nskip_ci=true\ndocs_only=true\nrebuild_docker=false\nlevel=pull-request\nsha={SHA}\n"
    )
    assert json.loads(decision_json(SKIPPED)) == SKIPPED.as_json()
    everything = run_everything("nobody answers")
    assert (
        as_env(everything)
        == "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=true\nNIGHTJAR_LEVEL=main\n"
    )
    assert (
        as_github(everything)
        == "run_slow_tests=true\nskip_ci=false\ndocs_only=false\nrebuild_docker=true\nlevel=main\nsha=\n"
    )


@pytest.mark.parametrize(
    "evaluate",
    [
        'eval "$CI_OUT"',
        "eval $CI_OUT",
        'eval "$CI_OUT$CI_ERR"',
        "eval $CI_OUT$CI_ERR",
        'printf %s "$CI_OUT$CI_ERR" > decided; . ./decided',
    ],
)
def test_a_shell_may_evaluate_the_output_in_any_common_way(evaluate: str, tmp_path: Path) -> None:
    """This includes both outputs together, without quotes, in a folder with contents chosen by a pull request."""
    (tmp_path / "a\ntouch broken\n").write_text("")
    output = in_a_shell(f"{evaluate}; echo $SKIP_CI $SKIP_SLOW_TESTS $REBUILD_DOCKER; ls", tmp_path)
    assert output.splitlines()[0] == "true true false"
    assert "broken" not in {path.name for path in tmp_path.iterdir()}


def test_reasons_are_one_line_comments_that_any_terminal_can_show() -> None:
    for line in [*explained(SKIPPED), *comments([HOSTILE, "", "…"])]:
        assert line.startswith("# ")
        assert line.isascii()
        assert line.isprintable()
        assert not set(line[1:]) & set("$`'\"\\*?[]<>&|;{}!~\n")
    assert explained(SKIPPED)[0] == "# run_slow_tests=false: off"
    assert comments(["the title has [skip ci]"]) == ["# the title has (skip ci)"]


def test_the_bots_answer_can_be_read_back() -> None:
    assert read_answer(decision_json(SKIPPED).encode()) == SKIPPED


@pytest.mark.parametrize("body", [b"", b"<html>Please log in</html>", b"[]", b"1", b'"x"', b"\xff", b"[" * 100_000])
def test_an_invalid_answer_is_rejected(body: bytes) -> None:
    assert read_answer(body) is None


@pytest.mark.parametrize(
    "skip_ci",
    [None, {}, {"value": None, "reason": "x"}, {"value": "true", "reason": "x"}, {"value": 1, "reason": "x"}, "true"],
)
def test_a_decision_missing_in_the_answer_runs_everything(skip_ci: object) -> None:
    """An older bot only answers about slow tests."""
    body = {"sha": "$(touch broken)", "run_slow_tests": {"value": False, "reason": "off"}, "skip_ci": skip_ci}
    decision = read_answer(json.dumps(body).encode())
    lacking = run_everything(texts.LACKING)
    assert decision == CiDecision(
        "", CiVerdict(False, "off"), lacking.skip_ci, lacking.docs_only, lacking.rebuild_docker
    )
