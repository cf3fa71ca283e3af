"""The text about skipped tests."""

from __future__ import annotations

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.github.text.sticky import SIZE_LIMIT
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes
from handlers.skipped_tests.decide import Required
from handlers.skipped_tests.section import MOST_SUITES, describe_skips
from tests.gfm import Page, rendered
from tests.handlers.ci_reports.reported import OF_HEAD, OLDER, WHEN, base, id_of, link, outcomes, suite, suite_of

PATH = "ci/required_tests.json"
NOTHING = Required()
HEADING = f"**Skipped tests** at {OF_HEAD} ({WHEN}):"


def said(tested: HeadAndBase, required: Required = NOTHING) -> str:
    return describe_skips(tested, required, PATH, "main")


def ops(head: SuiteOutcomes, base_outcomes: SuiteOutcomes | None = None) -> HeadAndBase:
    return outcomes({"ops": head}, {"ops": base(base_outcomes)} if base_outcomes else {})


TEXTS: dict[str, tuple[HeadAndBase, Required, str]] = {
    "nothing differs": (
        ops(suite(add="failed", mul="skipped"), suite(add="passed", mul="skipped")),
        NOTHING,
        f"**Skipped tests:** no difference from {link()} at {OF_HEAD} ({WHEN}).",
    ),
    "some are newly skipped": (
        ops(suite(add="skipped", mul="skipped"), suite(add="passed", mul="passed")),
        NOTHING,
        f"{HEADING}\n\n- `ops`: 2 tests are newly skipped, compared with {link()}.\n\n"
        f"Newly skipped:\n- `{id_of('add')}`\n- `{id_of('mul')}`",
    ),
    "one newly skipped, one again": (
        ops(suite(add="skipped", mul="passed"), suite(add="passed", mul="skipped")),
        NOTHING,
        f"{HEADING}\n\n- `ops`: 1 test is newly skipped, 1 test runs again, compared with {link()}.\n\n"
        f"Newly skipped:\n- `{id_of('add')}`\n\nRunning again:\n- `{id_of('mul')}`",
    ),
    "some are removed": (
        ops(suite(add="passed"), suite(add="passed", mul="passed", div="passed")),
        NOTHING,
        f"{HEADING}\n\n- `ops`: 2 tests were removed, compared with {link()}.",
    ),
    "no base": (
        ops(suite(add="skipped")),
        NOTHING,
        f"{HEADING}\n\n- `ops`: no earlier results on the base branch to compare with.",
    ),
    "no results at all": (
        outcomes({}, troubles=("The run of `CI` has no artifact that matches `test-*`.",)),
        NOTHING,
        f"{HEADING}\n\n- The run of `CI` has no artifact that matches `test-*`.",
    ),
    "several suites, differences first": (
        outcomes(
            {"arith": suite(add="passed"), "te": suite(add="skipped"), "new": suite(add="passed")},
            {"arith": base(suite(add="passed")), "te": base(suite(add="passed"), OLDER)},
        ),
        NOTHING,
        f"{HEADING}\n\n- `te`: 1 test is newly skipped, compared with {link(OLDER)}.\n"
        f"- `arith`: no difference from {link()}.\n"
        "- `new`: no earlier results on the base branch to compare with.\n\n"
        f"Newly skipped:\n- `te`: `{id_of('add')}`",
    ),
    "a missing suite": (
        outcomes(
            {"ops": suite(add="passed")}, {"ops": base(suite(add="passed")), "te": base(suite())}, vanished=("te",)
        ),
        NOTHING,
        f"{HEADING}\n\n- `te`: **no results**, although the base has some.\n- `ops`: no difference from {link()}.",
    ),
    "incomplete results": (
        ops(suite(add="passed", complete=False), suite(add="passed", mul="passed")),
        NOTHING,
        f"{HEADING}\n\n- `ops`: some results are missing or unreadable.\n- `ops`: no difference from {link()}.",
    ),
    "required tests that ran": (
        ops(suite(add="passed"), suite(add="passed")),
        Required({"ops": (id_of("add"),)}),
        f"**Skipped tests:** no difference from {link()} at {OF_HEAD} ({WHEN}).",
    ),
    "required tests that did not run": (
        ops(suite(add="skipped"), suite(add="skipped")),
        Required({"ops": (id_of("add"), id_of("mul")), "te": (id_of("add"),)}),
        f"{HEADING}\n\n- **3 required tests did not run**; `{PATH}` on `main` lists the required tests.\n"
        f"- `ops`: no difference from {link()}.\n\n"
        f"Required, but did not run:\n- `ops`: `{id_of('add')}`: skipped\n- `ops`: `{id_of('mul')}`: missing\n"
        "- `te`: no results for the whole suite",
    ),
    "TVM #13368: the file of required tests is missing": (
        ops(suite(add="passed"), suite(add="passed")),
        Required(problem="it does not exist"),
        f"{HEADING}\n\n- We could not read the list of required tests, `{PATH}` on `main`: `it does not exist`.\n"
        f"- `ops`: no difference from {link()}.",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_the_text_of_the_section(case: str) -> None:
    tested, required, text = TEXTS[case]
    assert said(tested, required) == text


def test_a_long_list_is_collapsed_and_truncated() -> None:
    many = {f"t{number:04}": "skipped" for number in range(1_000)}
    text = said(ops(suite_of(many), suite_of(dict.fromkeys(many, "passed"))))
    assert "1,000 tests are newly skipped" in text
    assert "<details><summary>Newly skipped: 1,000</summary>" in text
    assert "- and 950 more\n\n</details>" in text
    assert text.count("- `tests/") == 50


HOSTILE = [
    "tests/@hubot::<img src=x onerror=alert(1)>",
    "`` `@hubot` ``",
    "x</summary></details> @octocat #1",
    "a|b|@hubot",
    "[x](https://evil.example.org) ![y](https://evil.example.org/y)",
    "<!-- nightjar:end:skipped-tests -->",
    "é\u202e\u0000@hubot\n\n# heading\n- [ ] x",
    "x" * 3_000,
    "|" * 3_000,
]


def test_names_of_tests_and_suites_have_no_effect() -> None:
    """They come from files that a pull request's code has written."""
    heads = {name: SuiteOutcomes({test: SeenTest(Status.SKIPPED) for test in HOSTILE}) for name in HOSTILE}
    bases = {name: base(SuiteOutcomes({test: SeenTest(Status.PASSED) for test in HOSTILE})) for name in HOSTILE}
    required = Required({name: tuple(HOSTILE) for name in HOSTILE}, problem=HOSTILE[0])
    text = said(outcomes(heads, bases, vanished=tuple(HOSTILE)), required)
    page = Page(rendered(text, raw_html=True))
    assert page.tags == {"p", "strong", "code", "ul", "li", "a", "details", "summary"}
    assert page.links == {bases[HOSTILE[0]].url}
    assert "@hubot" not in page.speech
    assert "@octocat" not in page.speech
    lines = text.splitlines()
    assert sum(line.startswith("<details>") for line in lines) == lines.count("</details>") == 2
    assert len(text) < SIZE_LIMIT / 3


def test_very_many_suites_are_truncated() -> None:
    names = [f"suite-{number:03}" for number in range(MOST_SUITES + 7)]
    text = said(outcomes(dict.fromkeys(names, suite(add="passed")), {names[-1]: base(suite(add="passed"))}))
    assert text.count("- `suite-") == MOST_SUITES
    assert text.endswith("- and 7 more suites")


def test_a_base_without_a_page_is_named_without_a_link() -> None:
    tested = outcomes({"ops": suite(add="passed")}, {"ops": BaseSuite(OLDER, "", suite(add="passed"))})
    assert said(tested).startswith("**Skipped tests:** no difference from `ccccccc` at ")
