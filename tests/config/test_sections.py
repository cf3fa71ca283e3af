"""The keys below `docs`, `skipped_tests` and `runtime`, and the errors for invalid values."""

from __future__ import annotations

import pytest

from bot.app.load import parse_config
from bot.config import Config, ConfigError
from bot.config.texts import BAD_PATH
from bot.core.urls import NO_CREDENTIALS, NOT_AN_ADDRESS, NOT_HTTPS
from handlers.ci_reports.texts import NO_RESULTS_SOURCE, TWO_RESULTS_SOURCES, UNKNOWN_LAB
from handlers.docs_link.config import DOCS
from handlers.runtime.config import RUNTIME
from handlers.skipped_tests.config import SKIPPED_TESTS
from tests.settings import enabled

IN_DOCS, IN_SKIPPED, IN_RUNTIME = (
    "repositories.octocat/compiler." + key for key in ("docs", "skipped_tests", "runtime")
)
FILLED_IN = "available placeholders: {number}, {build}, {sha}"
LINK = "https://docs.example.org/PR-{number}/{build}/index.html"


def loaded(line: str) -> Config:
    return parse_config(f"repositories:\n  octocat/compiler:\n    {line}\n".encode(), "app.yaml")


def fault(line: str) -> str:
    """Return the fault in a key, without its place."""
    with pytest.raises(ConfigError) as caught:
        loaded(line)
    return str(caught.value).partition(": ")[2]


def docs(link: str) -> str:
    return f'docs: {{context: docs/pr-head, link: "{link}"}}'


@pytest.mark.parametrize("link", [LINK, "https://docs.example.org/{sha}?a=1#{number}", "https://[::1]:8443/{build}"])
def test_a_link_is_an_https_address_with_placeholders(link: str) -> None:
    config = enabled(loaded(docs(link)).repositories["octocat/compiler"], DOCS)
    assert (config.context, config.link) == ("docs/pr-head", link)


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("https://docs.example.org/{pr}", f"must not contain {{pr}}; {FILLED_IN}"),
        ("https://docs.example.org/{}", f"must not contain {{}}; {FILLED_IN}"),
        ("https://docs.example.org/{{sha}}", f"must not contain {{; {FILLED_IN}"),
        ("https://docs.example.org/{sha", f"must not contain {{; {FILLED_IN}"),
        ("https://docs.example.org/sha}", f"must not contain }}; {FILLED_IN}"),
        (
            "https://{sha}.example.org/",
            "must not contain {sha} in the host: what CI reports must not choose the server",
        ),
        ("https://docs.example.org:{number}/", "must not contain {number} in the host"),
        ("http://docs.example.org/{sha}", NOT_HTTPS),
        ("https://octocat:sesame@docs.example.org/", NO_CREDENTIALS),
        ("docs.example.org/{sha}", NOT_AN_ADDRESS),
        ("javascript:alert(1)", NOT_AN_ADDRESS),
        ("https://docs.example.org/<{sha}>", NOT_AN_ADDRESS),
        ("https://docs.example.org/a b", NOT_AN_ADDRESS),
    ],
)
def test_any_other_link_is_a_fault_of_app_yaml(link: str, problem: str) -> None:
    said = fault(docs(link))
    assert said.startswith(f"{IN_DOCS}.link: {problem}")
    assert "sesame" not in said


def test_docs_need_a_context_and_a_link() -> None:
    assert f"{IN_DOCS}: the key link is missing" in fault("docs: {context: docs/pr-head}")
    assert "the key context is missing" in fault("docs:")


LAB = "results: {bucket: device-results, labs: {ci: {targets: [linux]}}}"


def with_lab(line: str, *, before: str = "") -> Config:
    text = f"{before}repositories:\n  octocat/compiler:\n    {LAB}\n    {line}\n"
    return parse_config(text.encode(), "app.yaml")


@pytest.mark.parametrize("key", ["skipped_tests", "runtime"])
@pytest.mark.parametrize("source", ["lab: ci, target: linux", 'workflow: CI, artifacts: ["test-results-*"]'])
def test_results_come_from_one_of_two_sources(key: str, source: str) -> None:
    assert key in with_lab(f"{key}: {{{source}}}").repositories["octocat/compiler"].features


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        *((keys, NO_RESULTS_SOURCE) for keys in ("", "lab: ci", "target: linux", "workflow: CI", 'artifacts: ["*"]')),
        ("workflow: CI, artifacts: []", NO_RESULTS_SOURCE),
        ('lab: ci, target: linux, workflow: CI, artifacts: ["*"]', TWO_RESULTS_SOURCES),
        ("lab: ci, target: linux, workflow: CI", TWO_RESULTS_SOURCES),
        ('lab: ci, artifacts: ["*"]', TWO_RESULTS_SOURCES),
    ],
)
def test_an_invalid_source_is_a_fault_that_says_what_is_needed(keys: str, problem: str) -> None:
    for key, place in (("skipped_tests", IN_SKIPPED), ("runtime", IN_RUNTIME)):
        assert fault(f"{key}: {{{keys}}}").endswith(f"{place}: {problem}")


def test_true_names_no_source() -> None:
    assert fault("runtime: true").endswith(f"{IN_RUNTIME}: {NO_RESULTS_SOURCE}")


@pytest.mark.parametrize(("lab", "target"), [("other", "linux"), ("ci", "mac")])
def test_an_unknown_lab_is_a_fault(lab: str, target: str) -> None:
    """No results would ever arrive, and nobody would notice (TVM #13368)."""
    said = UNKNOWN_LAB.format(lab=lab, target=target)
    with pytest.raises(ConfigError) as caught:
        with_lab(f"runtime: {{lab: {lab}, target: {target}}}")
    assert str(caught.value).endswith(f"{IN_RUNTIME}: {said}")
    assert fault(f"runtime: {{lab: {lab}, target: {target}}}").endswith(f"{IN_RUNTIME}: {said}")


def test_defaults_may_leave_the_source_of_results_to_each_repository() -> None:
    config = with_lab("runtime: {lab: ci, target: linux}", before="defaults:\n  runtime: {slow: 30s}\n")
    runtime = enabled(config.repositories["octocat/compiler"], RUNTIME)
    assert (runtime.slow, runtime.lab) == ("30s", "ci")


@pytest.mark.parametrize("path", ["ci/required_tests.json", "required.json", ".github/required-tests.json", "a/..b/c"])
def test_required_tests_are_in_a_file(path: str) -> None:
    config = with_lab(f"skipped_tests: {{lab: ci, target: linux, required: {path}}}").repositories["octocat/compiler"]
    assert enabled(config, SKIPPED_TESTS).required == path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../other.json", BAD_PATH),
        ("ci/./a.json", BAD_PATH),
        ("/etc/passwd", BAD_PATH),
        ("ci//a.json", BAD_PATH),
        ("ci/", BAD_PATH),
        ("a?ref=x", "must be the path of a file"),
        ("a%2e", "must be the path of a file"),
        ("a b", "must be the path of a file"),
    ],
)
def test_a_path_out_of_the_repository_is_a_fault(path: str, problem: str) -> None:
    said = fault(f'skipped_tests: {{lab: ci, target: linux, required: "{path}"}}')
    assert said.startswith(f"{IN_SKIPPED}.required: {problem}")


def test_runtime_reports_can_be_configured() -> None:
    config = enabled(with_lab("runtime: {lab: ci, target: linux}").repositories["octocat/compiler"], RUNTIME)
    assert (config.change, config.slow) == (30, "10s")
    assert "must be a whole number from 1" in fault("runtime: {lab: ci, target: linux, change: 0}")
    assert "must be a time such as" in fault("runtime: {lab: ci, target: linux, slow: fast}")
