"""Links from a test to its source, and the link that opens an issue: only for clear cases, with escaped text."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.model import Detail, SeenTest, Status

from bot.results.report.findings import NewFailure
from handlers.dashboard.history.issue_draft import LONGEST_ADDRESS, IssueDraft
from handlers.dashboard.history.page import file_in_id, source_place, source_url
from tests.gfm import Page, rendered
from tests.handlers.dashboard.nightly_runs import sha
from tests.results.test_report_safe import ACTIVE, OURS, TEXTS

PAGE = "https://github.com/octocat/compiler"


@pytest.mark.parametrize(
    ("test", "path"),
    [
        ("tests/a b/test_x.py::test_y[a::b]", "tests/a b/test_x.py"),
        ("TestSuite.Case", ""),
        ("TestSuite.Case::x/0", ""),
        ("../../etc/passwd.py::x", ""),
        ("/etc/passwd.py::x", ""),
        ("a//b.py::x", ""),
        ("a/./b.py::x", ""),
        ("a\\b.py::x", ""),
        ("a\n.py::x", ""),
        ("javascript:alert(1).py::x", "javascript:alert(1).py"),
        ("x" * 400 + ".py::x", ""),
        ("tests/Makefile::x", ""),
    ],
)
def test_the_file_in_an_id_is_linked_if_it_is_a_path(test: str, path: str) -> None:
    assert file_in_id(test) == path


def test_a_report_names_file_and_line() -> None:
    detail = Detail(path="tests/test_x.py", line=12)
    failure = NewFailure("operators", "x", SeenTest(Status.FAILED), {"x": detail})
    assert source_place(failure) == ("tests/test_x.py", 12)
    assert source_url(PAGE, sha(1), "a b#?/x.py", 12) == f"{PAGE}/blob/{sha(1)}/a%20b%23%3F/x.py#L12"


def body_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["body"][0]


def test_an_issue_contains_what_is_known_about_a_flaky_test() -> None:
    draft = IssueDraft(
        PAGE, "a.py::test_x", "operators", "example-lab/adreno", "failed in 3 of 40 runs", [sha(1)],
        reproduce="pytest a.py::test_x", history="https://ci.example.org/r/octocat/compiler/tests?id=x",
    )  # fmt: skip
    url = draft.address()
    assert parse_qs(urlsplit(url).query)["title"] == ["Flaky test: a.py::test_x"]
    assert body_of(url) == (
        "`a.py::test_x` of `operators` on `example-lab/adreno`\n\n"
        "The test is flaky: failed in 3 of 40 runs. It both passed and failed at these commits: "
        f"[`{sha(1)[:10]}`]({PAGE}/commit/{sha(1)}).\n\n"
        "To reproduce it:\n\n```text\npytest a.py::test_x\n```\n\n"
        "[History of the test](https://ci.example.org/r/octocat/compiler/tests?id=x)"
    )


def test_an_issue_about_a_failing_test_names_the_commits_in_between() -> None:
    url = IssueDraft(PAGE, "x", "ops", "a/b", since=sha(2), good=sha(1), message="3 != 4").address()
    assert f"[commits in between]({PAGE}/compare/{sha(1)}...{sha(2)})" in body_of(url)


@settings(max_examples=60)
@given(st.lists(TEXTS, min_size=5, max_size=5))
def test_text_from_a_lab_has_no_effect_in_the_issue(text: list[str]) -> None:
    url = IssueDraft(
        PAGE, f"{text[0]}x", f"{text[1]}x", f"{text[2]}x", message=text[3], reproduce=text[4], since=sha(2)
    ).address()
    assert urlsplit(url).path == "/octocat/compiler/issues/new"
    page = Page(rendered(body_of(url), raw_html=True))
    assert page.tags <= {*OURS, "pre"}
    assert page.links <= {f"{PAGE}/commit/{sha(2)}"}
    assert not re.findall(ACTIVE, page.speech)


def test_the_address_is_short_enough_for_github() -> None:
    worst = "\U0001f426" * 5000
    assert len(IssueDraft(PAGE, worst, worst, worst, message=worst, reproduce=worst).address()) <= LONGEST_ADDRESS
