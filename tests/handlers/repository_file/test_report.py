"""The report about a repository's own file:

complete within GitHub's limits, and harmless whatever the file contains.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.config import ConfigError, ConfigFault
from bot.config.shared import overlaid
from handlers.repository_file.report import CheckedFile, config_report
from tests.gfm import rendered
from tests.settings import own_file, repository_config

GIVEN = repository_config()
FAULT = ConfigFault(".github/nightjar.yaml", 3, 7, "slow_tests.allow[0]", "must be one of author, triage")


def faulty(*faults: ConfigFault, commit: str = "") -> CheckedFile:
    return CheckedFile(faults, GIVEN, GIVEN, commit, "main")


def with_file(text: str) -> CheckedFile:
    return CheckedFile((), GIVEN, overlaid(GIVEN, own_file(text)), "", "main")


def test_faults_are_listed_and_annotated_and_fail_the_check() -> None:
    content = config_report(faulty(FAULT, commit="0123456789abcdef"))
    assert (content.conclusion, content.title) == ("failure", "1 error")
    assert content.summary.splitlines() == [
        "`.github/nightjar.yaml` has 1 error and is ignored. Until a valid file is on `main`, these settings stay in "
        "force: the file of commit `0123456`, over app.yaml.",
        "",
        "To check it on your own machine: `nightjar check-config .github/nightjar.yaml`",
        "",
        "- line 3, column 7: `slow_tests.allow[0]`: must be one of author, triage",
    ]
    (annotation,) = content.annotations
    assert (annotation.path, annotation.line, annotation.column, annotation.level) == (
        ".github/nightjar.yaml",
        3,
        7,
        "failure",
    )
    assert (annotation.title, annotation.message) == ("slow_tests.allow[0]", "must be one of author, triage")


def test_without_an_earlier_valid_file_app_yaml_alone_stays_in_force() -> None:
    assert "stay in force: app.yaml only." in config_report(faulty(FAULT)).summary


def test_fifty_faults_are_annotated_and_all_are_counted() -> None:
    faults = [ConfigFault("f", line, 1, f"key{line}", "x") for line in range(1, 1_235)]
    content = config_report(faulty(*faults))
    assert (content.title, len(content.annotations)) == ("1,234 errors", 50)
    assert content.annotations[-1].line == 50


def test_parts_that_exceed_githubs_limits_are_left_out_and_the_report_says_so() -> None:
    content = config_report(faulty(*(ConfigFault("f", line, 1, "|" * 200, "`|" * 2_000) for line in range(1, 60))))
    assert content.summary.endswith("*Left out, because GitHub limits the text of a check run: more errors.*")


def test_a_file_without_changes_is_reported_as_such() -> None:
    content = config_report(with_file("slow_tests: {allow: [author, triage]}"))
    assert (content.conclusion, content.title) == ("success", "Valid; no changes")
    assert "|" not in content.summary


def test_each_changed_setting_is_shown_before_and_after() -> None:
    content = config_report(with_file("help: false\nslow_tests: {branches: ['a|b', '`']}\nrerun: {allow: [admin]}"))
    assert content.title == "Valid; 3 settings change"
    assert rendered(content.summary).count("<tr>") == 4
    content_off = config_report(with_file("rerun: false"))
    assert '| `rerun.allow` | `["author", "triage"]` | (off) |' in content_off.summary


@given(st.text(max_size=60), st.text(max_size=200))
def test_text_from_a_file_mentions_nobody_and_is_no_markup(key: str, message: str) -> None:
    content = config_report(faulty(ConfigFault("f", 1, 1, f"@octocat {key}", f"<b>@hubot {message}")))
    page = rendered(content.summary)
    outside_code = "".join(part.split("</code>")[-1] for part in page.split("<code>"))
    assert "@" not in outside_code.replace("@\u200b", "")
    assert "<b>" not in page
    assert page.count("<li>") == 1
    annotation_text = content.annotations[0].title + content.annotations[0].message
    assert "@" not in annotation_text.replace("@\u200b", "")


@given(st.text(max_size=80))
def test_any_file_is_either_valid_or_has_reportable_faults(text: str) -> None:
    faults: tuple[ConfigFault, ...] = ()
    try:
        own_file(text.encode("utf-8", "surrogatepass"))
    except ConfigError as error:
        faults = error.faults
    content = config_report(faulty(*faults))
    assert (content.conclusion == "failure") is bool(content.annotations) is bool(faults)
