"""Patterns in `repositories`: which entry applies to a repository, and how their keys combine."""

import pytest

from bot.app.load import parse_config
from bot.config import Config, ConfigError
from bot.config.repositories import matches_entry
from handlers.merge.config import MERGE
from handlers.slow_tests.config import SLOW_TESTS
from tests.settings import enabled

LAYERS = """
defaults:
  help: false
  slow_tests: {allow: [write]}
repositories:
  octo-org/llvm-project: {slow_tests: {status: ci/own}, rerun: true}
  octo-org/llvm-*: {merge: true, rerun: false}
  octo-org/*: {slow_tests: {branches: [dev]}, rerun: false}
  octo-org/llvm-zero:
  hubot/*: {slow_tests: false}
"""


def loaded(text: str) -> Config:
    return parse_config(text.encode(), "app.yaml")


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(text)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("octo-org/llvm-project", "octo-org/llvm-project"),
        ("Octo-Org/LLVM-Project", "octo-org/llvm-project"),
        ("octo-org/llvm-zero", "octo-org/llvm-zero"),
        ("octo-org/llvm-test-suite", "octo-org/llvm-*"),
        ("octo-org/LLVM-one", "octo-org/llvm-*"),
        ("octo-org/llvm", "octo-org/*"),
        ("OCTO-ORG/mlir", "octo-org/*"),
        ("hubot/llvm-project", "hubot/*"),
        ("octo-org2/llvm-project", None),
        ("octo/llvm-project", None),
        ("octocat/octo-org", None),
        ("octo-org", None),
    ],
)
def test_a_name_wins_over_patterns_and_the_longest_pattern_over_the_others(name: str, entry: str | None) -> None:
    assert loaded(LAYERS).configured.entry_for(name) == entry


def test_keys_combine_from_defaults_over_patterns_to_the_name_whatever_their_order_in_the_file() -> None:
    lines = LAYERS.strip().splitlines()
    for text in (LAYERS, "\n".join([*lines[:4], *reversed(lines[4:])])):
        settings = loaded(text).configured.entries
        own, zero = settings["octo-org/llvm-project"], settings["octo-org/llvm-zero"]
        llvm, everything, hubot = settings["octo-org/llvm-*"], settings["octo-org/*"], settings["hubot/*"]
        slow_tests = enabled(own, SLOW_TESTS)
        assert (slow_tests.status, slow_tests.branches, slow_tests.allow) == ("ci/own", ("dev",), ("write",))
        assert own.features == {"slow_tests", "rerun", "cc_reviewers", "merge"}
        assert zero.features == llvm.features == {"slow_tests", "cc_reviewers", "merge"}
        assert enabled(zero, SLOW_TESTS).branches == enabled(llvm, SLOW_TESTS).branches == ("dev",)
        assert everything.features == {"slow_tests", "cc_reviewers"}
        assert hubot.features == {"rerun", "cc_reviewers"}


def test_a_pattern_lists_no_repository_until_one_is_known() -> None:
    config = loaded(LAYERS)
    names = ["octo-org/llvm-project", "octo-org/llvm-zero"]
    assert (list(config.repositories), len(config.repositories), config.configured.named) == (names, 2, names)
    assert config.repository("octo-org/mlir") is None
    assert config.repository("octo-org/*") is None
    assert "octo-org/*" not in config.repositories


def test_a_known_repository_is_listed_with_the_settings_of_its_pattern_in_any_case_of_letters() -> None:
    config = loaded(LAYERS)
    config.configured.know(7, "Octo-Org/MLIR")
    config.configured.know(8, "octo-org/llvm-one")
    entries = config.configured.entries
    assert list(config.repositories)[2:] == ["octo-org/llvm-one", "Octo-Org/MLIR"]
    assert len(config.repositories) == len(config.repositories.items()) == 4
    assert config.repositories["Octo-Org/MLIR"] is config.repository("octo-org/mlir") is entries["octo-org/*"]
    assert config.configured.name_of("OCTO-ORG/mlir") == "Octo-Org/MLIR"
    assert dict(config.configured.with_feature(MERGE)).keys() == {
        "octo-org/llvm-project",
        "octo-org/llvm-zero",
        "octo-org/llvm-one",
    }


def test_a_known_repository_has_one_name_and_a_name_one_repository() -> None:
    config = loaded(LAYERS)
    config.configured.know(7, "octo-org/mlir")
    config.configured.know(7, "octo-org/llvm-mlir")
    generation = config.configured.generation
    config.configured.know(7, "octo-org/llvm-mlir")
    assert config.configured.generation == generation, "nothing has changed"
    assert list(config.repositories)[2:] == ["octo-org/llvm-mlir"]
    assert config.repository("octo-org/mlir") is None
    config.configured.know(8, "octo-org/LLVM-mlir")
    assert list(config.repositories)[2:] == ["octo-org/LLVM-mlir"]
    config.configured.forget(7)
    assert list(config.repositories)[2:] == ["octo-org/LLVM-mlir"]
    config.configured.forget(8)
    assert (list(config.repositories)[2:], config.repository("octo-org/llvm-mlir")) == ([], None)


@pytest.mark.parametrize("name", ["octocat/mlir", "octo-org2/mlir", "octo-org/llvm-project"])
def test_nothing_is_known_that_no_pattern_matches_or_that_has_an_entry_of_its_own(name: str) -> None:
    config = loaded(LAYERS)
    config.configured.know(7, "octo-org/mlir")
    config.configured.know(7, name)
    assert list(config.repositories) == ["octo-org/llvm-project", "octo-org/llvm-zero"]


def test_a_repository_that_is_not_listed_has_its_settings_still() -> None:
    config = loaded(LAYERS)
    config.configured.know(7, "octo-org/mlir", listed=False)
    assert "octo-org/mlir" not in config.repositories
    assert len(config.repositories) == 2
    assert config.repository("octo-org/mlir") is config.configured.entries["octo-org/*"]


def test_repositories_may_become_known_while_others_are_iterated() -> None:
    config = loaded(LAYERS)
    for number, _ in enumerate(config.repositories.items()):
        config.configured.know(100 + number, f"octo-org/new-{number}")
    assert len(config.repositories) == 4


@pytest.mark.parametrize("entry", ["*", "*/*", "*/compiler", "octo-*/compiler", "octo-org*", "octo-org/*-mlir", "/*"])
def test_a_pattern_is_a_beginning_of_one_owners_names(entry: str) -> None:
    assert faults(f'repositories: {{"{entry}": }}') == [
        f"app.yaml:1:16: repositories.{entry}: must be a repository's owner/name, as in octocat/compiler, "
        "or a pattern such as octo-org/*"
    ]


def test_the_same_pattern_in_another_case_of_letters_is_an_error() -> None:
    assert faults("repositories:\n  octo-org/*:\n  Octo-Org/*:\n") == [
        "app.yaml:3:3: repositories.Octo-Org/*: the same repository as in line 2: GitHub ignores upper and lower "
        "case; remove one of them"
    ]


def test_an_error_in_a_pattern_is_reported_once_and_a_pattern_must_be_complete() -> None:
    assert faults("repositories:\n  octo-org/*: {merge: {method: fast}}\n  octo-org/a: {help: false}\n") == [
        "app.yaml:2:32: repositories.octo-org/*.merge.method: must be one of squash, merge, rebase"
    ]
    assert faults(
        "repositories:\n  octo-org/*: {last_good: {every: 5m}}\n  octo-org/a: {last_good: {require: [x]}}"
    ) == [
        "app.yaml:2:27: repositories.octo-org/*.last_good: the key require is missing; it must be a list, each item "
        "a name or a pattern of *, ? and [letters], as in release/*"
    ]


@pytest.mark.parametrize(
    ("entry", "name", "expected"),
    [
        ("octo-org/a", "Octo-Org/A", True),
        ("octo-org/a", "octo-org/ab", False),
        ("octo-org/a*", "octo-org/A", True),
        ("octo-org/a*", "octo-org/ab*", True),
        ("octo-org/ab*", "octo-org/a*", False),
        ("octo-org/*", "octo-org2/a", False),
    ],
)
def test_an_entry_matches_a_name_or_a_longer_pattern(entry: str, name: str, *, expected: bool) -> None:
    assert matches_entry(entry, name) is expected
