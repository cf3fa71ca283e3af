"""Keys that contradict each other: each contradiction is reported at its line."""

import pytest

from bot.app.load import parse_config
from bot.config import ConfigError

PLACE = "repositories.octocat/compiler."


def faults(*lines: str) -> list[str]:
    """Return the faults in a repository's keys, each with its line."""
    text = "repositories:\n  octocat/compiler:\n" + "".join(f"    {line}\n" for line in lines)
    try:
        parse_config(text.encode(), "app.yaml")
    except ConfigError as error:
        return [line.removeprefix("app.yaml:") for line in str(error).splitlines()]
    return []


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["nightly: {branch: main}"], "3:14: nightly: branch and from must differ: one tracks the other"),
        (
            ["last_good: {from: develop, branch: develop, require: [ci]}"],
            "3:16: last_good: branch and from must differ: one tracks the other",
        ),
        (
            ["nightly: {}", "last_good: {branch: nightly, require: [ci]}"],
            "4:16: last_good: branch must differ from the one of nightly, which moves it too",
        ),
        (
            ["nightly: {}", "docker_update: {branch: nightly}"],
            "4:20: docker_update: branch must differ from the one of nightly, which moves it too",
        ),
        (
            ["docker_update: {branch: last-successful}", "last_good: {require: [ci]}"],
            "3:20: docker_update: branch must differ from the one of last_good, which moves it too",
        ),
        (
            ["merge: {label: Hold}"],
            "3:12: merge: label must not be one of hold_labels: those block a merge",
        ),
        (
            ["nightly: {branch: refs/heads/nightly}"],
            "3:23: nightly.branch: must be the name of a branch without refs/heads/",
        ),
    ],
)
def test_a_contradiction_is_reported_with_its_line(lines: list[str], fault: str) -> None:
    line, column, said = fault.split(":", 2)
    assert faults(*lines) == [f"{line}:{column}: {PLACE}{said.lstrip()}"]


def test_keys_that_do_not_conflict_are_no_fault() -> None:
    assert faults("nightly: {}", "last_good: {require: [ci]}", "docker_update: {}", "merge: {label: ready}") == []
    assert faults("merge: {label: hold, hold_labels: [wait]}") == []
    assert faults("nightly: {branch: main, from: develop}", "last_good: false") == []
