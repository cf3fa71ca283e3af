"""Possible improvements of a title and a description, as a table: the cases of TVM's script, and ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.lint.feature import LintFindings, LintRules, decide_lint, lint_check_run
from handlers.lint.texts import NO_TEXT, NO_TITLE, PERIOD

ANY = LintRules(tags=None, owner="octo-org", not_meant=("ci",))
KNOWN = LintRules(tags={"tests", "skip ci", "hexagon"}, owner="octo-org")
TEXT = "Saves a pass."


@pytest.mark.parametrize(
    ("title", "body", "faults"),
    [
        ("Make it faster", TEXT, ()),
        ("", TEXT, (NO_TITLE,)),
        ("  ", TEXT, (NO_TITLE,)),
        ("Make it faster.", TEXT, (PERIOD,)),
        ("Make it faster. ", TEXT, (PERIOD,)),
        ("Make it faster...", TEXT, (PERIOD,)),
        ("Update to 1.2", TEXT, ()),
        ("Make it faster!", TEXT, ()),
        ("Make it faster", "", (NO_TEXT,)),
        ("Make it faster", " \r\n ", (NO_TEXT,)),
        ("Make it faster", "<!-- Say what it does -->\r\n", (NO_TEXT,)),
        ("Make it faster", "<!-- Say what it does -->\n" + TEXT, ()),
        ("Make it faster", "```\ncode\n```", ()),
        ("", "", (NO_TITLE, NO_TEXT)),
        ("[anything] Make it faster", TEXT, ()),
    ],
)
def test_each_problem_is_found(title: str, body: str, faults: tuple[str, ...]) -> None:
    assert decide_lint(title, body, ANY) == LintFindings(faults)


@pytest.mark.parametrize(
    ("title", "unknown"),
    [
        ("[tests] Faster", ""),
        ("[Tests][HEXAGON] Faster", ""),
        ("[tests, hexagon] Faster", ""),
        ("[Skip  CI] Faster", ""),
        ("[] Faster", ""),
        ("Faster", ""),
        ("[test] Faster", "`test`"),
        ("[tests, foo][`bar`] Faster", "`foo`, `` `bar` ``"),
    ],
)
def test_tags_are_recognized_in_any_case(title: str, unknown: str) -> None:
    """TVM's script had such a check, but never enabled it."""
    faults = decide_lint(title, TEXT, KNOWN).faults
    assert [fault.split("unknown tags: ")[1].split(".** Known tags: ") for fault in faults] == (
        [[unknown, "`hexagon`, `skip ci`, `tests`."]] if unknown else []
    )


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Fix @T.prim_func", "It is `@octocat`, and @tvm.testing.slow."),
        ("Fix it", "```python\n@octocat\ndef f(): ...\n```"),
        ("Fix it", "    @octocat"),
        ("Fix it", "Reported by octocat@example.org, see https://example.org/@octocat."),
        ("Fix it", "<!-- @octocat -->a"),
        ("Fix it", "Fixes it.\r\n\r\ncc @octocat, @octo-org/gpu\r\n"),
        ("Fix it", "Thanks, @octocat.\n\ncc @Octocat"),
        ("Fix it", "@ci run slow tests"),
        ("Fix it", "npm i @scope/package"),
    ],
)
def test_code_addresses_and_cc_lines_cause_no_warning(title: str, body: str) -> None:
    """TVM #12840, #12848: decorators in code; TVM #18432: `cc`, to request reviews; TVM #19798: e-mail addresses."""
    assert decide_lint(title, body, ANY) == LintFindings()


@pytest.mark.parametrize(
    ("title", "body", "names"),
    [
        ("Fix it", "Thanks, @octocat and @octo-org/gpu.", "`octocat`, `octo-org/gpu`"),
        ("Fix it as @octocat said", "Fixes it.", "`octocat`"),
        ("Fix it", "> @octocat wrote", "`octocat`"),
        ("Fix it", "@decorator\n\ncc @octocat", "`decorator`"),
    ],
)
def test_names_outside_of_code_only_warn(title: str, body: str, names: str) -> None:
    findings = decide_lint(title, body, ANY)
    assert findings.faults == ()
    assert f"GitHub notifies {names} about this" in findings.people
    assert lint_check_run(findings).conclusion == "success"


@pytest.mark.parametrize(
    ("findings", "conclusion", "title"),
    [
        (LintFindings(), "success", "No problems"),
        (LintFindings((), "names"), "success", "No problems; the text mentions people"),
        (LintFindings((PERIOD,)), "neutral", "1 problem"),
        (LintFindings((PERIOD, NO_TEXT), "names"), "neutral", "2 problems; the text mentions people"),
    ],
)
def test_the_report_gives_advice_and_lists_each_problem(findings: LintFindings, conclusion: str, title: str) -> None:
    content = lint_check_run(findings)
    assert (content.conclusion, content.title) == (conclusion, title)
    assert all(fault in content.summary for fault in (*findings.faults, findings.people))
    assert "never blocks a merge" in content.summary


@given(st.text(), st.text())
def test_any_title_and_description_can_be_checked(title: str, body: str) -> None:
    assert lint_check_run(decide_lint(f"[{title}]", body, KNOWN)).conclusion in ("success", "neutral")
