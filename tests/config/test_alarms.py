"""The keys for messages about failures."""

from __future__ import annotations

import pytest

from bot.app.load import parse_config
from bot.config import ConfigError
from bot.config.repository_file import MOST_ITEMS
from handlers.main_failures.config import MOST_WATCHED
from tests.settings import own_file

RESULTS = "results: {bucket: b-1, labs: {example-lab: {targets: [adreno]}}}"
NEEDS = "needs the key results, which says where labs upload; add it, or remove this key"


def faults_of(text: str) -> list[str]:
    try:
        parse_config(text.encode(), "app.yaml")
    except ConfigError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (f"repositories: {{octocat/a: {{{RESULTS}, regressions: {{to: [discord]}}}}}}", []),
        (f"defaults: {{regressions: true}}\nrepositories: {{octocat/a: {{{RESULTS}}}}}", []),
        ("defaults: {regressions: true}\nrepositories: {octocat/a: {regressions: false}}", []),
        (
            "repositories:\n  octocat/a:\n    regressions: {to: [discord]}\n    results: false\n    help: 5",
            [
                f"app.yaml:3:18: repositories.octocat/a.regressions: {NEEDS}",
                "app.yaml:5:11: repositories.octocat/a.help: is a number; it must be true, false or a mapping of keys; "
                "for example false",
            ],
        ),
        (
            "defaults: {regressions: true}\nrepositories: {octocat/a: , octocat/b: }",
            [f"app.yaml:1:25: defaults.regressions: {NEEDS}"],
        ),
        (
            "repositories: {octocat/a: {regressions: true, results: 5}}",
            [
                "app.yaml:1:56: repositories.octocat/a.results: is a number; it must be true, false or a mapping of "
                'keys; for example {"bucket": "device-results", "labs": {"example-lab": {"targets": ["hexagon-v73"]}}}'
            ],
        ),
    ],
)  # fmt: skip
def test_regressions_need_results(text: str, faults: list[str]) -> None:
    assert faults_of(text) == faults


def test_the_number_of_watched_branches_per_repository_is_limited() -> None:
    branches = [f"release/{number}" for number in range(MOST_WATCHED + 1)]
    given = parse_config(b"repositories: {octocat/a: {main_failures: true}}", "app.yaml").repositories["octocat/a"]
    own_file(f"main_failures: {{branches: {branches[1:]}}}", given)
    with pytest.raises(ConfigError) as refused:
        own_file(f"main_failures: {{branches: {branches}}}", given)
    message = ".github/nightjar.yaml:1:27: main_failures.branches: has more than 10 items, the maximum"
    assert str(refused.value) == message


def test_the_number_of_patterns_per_repository_is_limited() -> None:
    given = parse_config(b"repositories: {octocat/a: {last_good: {require: [lint]}}}", "app.yaml").repositories
    patterns = [f"*{number}" for number in range(MOST_ITEMS + 1)]
    own_file(f"last_good: {{require: {patterns[1:]}}}", given["octocat/a"])
    with pytest.raises(ConfigError) as refused:
        own_file(f"last_good: {{require: {patterns}}}", given["octocat/a"])
    message = ".github/nightjar.yaml:1:22: last_good.require: has more than 100 items, the maximum"
    assert str(refused.value) == message
