"""`nightjar-lab report`: which tests of a job ran, which did not, and why, where each CI shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from nightjar_lab.job_summary import SkipKind, kind_of
from nightjar_lab.main import kit
from nightjar_lab.pytest import run_texts, texts

NO_CI = {"GITHUB_STEP_SUMMARY": None, "JENKINS_URL": None, "GITLAB_CI": None}
SUITE = """
    import os, pytest
    from nightjar_lab.pytest import Target, requires

    def test_passes(): pass
    def test_fails(): assert "`<b>|" == 1
    @pytest.mark.slow
    def test_slow(): pass
    @pytest.mark.level("release")
    def test_release(): pass
    @pytest.mark.skip(reason="quarantined until 2026-12-01")
    def test_quarantined(): pass
    @pytest.mark.skip(reason="not today <b>")
    def test_other(): pass
"""


def report(folder: Path, *arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(kit, ["report", *arguments], env={**NO_CI, **environment})


def test_the_summary_of_a_real_run_says_why_tests_did_not_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SKIP_SLOW_TESTS", raising=False)
    monkeypatch.setenv("NIGHTJAR_LEVEL", "pull-request")
    monkeypatch.chdir(pytester.path)
    file = pytester.makepyfile(SUITE).name
    subprocess.run(["git", "init", "--quiet"], check=True)
    pytester.runpytest_inprocess("--junitxml=report.xml").assert_outcomes(passed=1, failed=1, skipped=4)
    ended = report(pytester.path, "report.xml")
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    assert lines[:3] == ["## Tests of this job", "", "2 tests ran and 4 tests did not: 1 passed, 1 failed, 4 skipped."]
    for count in ("2 tests skipped by level", "1 test skipped by quarantine", "1 test skipped for other reasons"):
        assert f"<details><summary>{count}</summary>" in lines
    assert "To run them: @ci run slow tests or @ci run level nightly" in ended.stdout
    ids = CliRunner().invoke(kit, ["ids", "report.xml"]).stdout.splitlines()
    assert f"{file}::test_fails" in ids
    assert [line for line in lines if f"`{file}::test_fails`: `" in line and "assert" in line]
    assert f"- `{file}::test_slow`" in lines
    assert "`not today <b>`" in ended.stdout

    step = pytester.path / "step.md"
    step.write_text("before\n")
    assert report(pytester.path, "report.xml", "--summary", GITHUB_STEP_SUMMARY=str(step)).exit_code == 0
    assert step.read_text() == f"before\n{ended.stdout}"
    assert report(pytester.path, "report.xml", "--summary", JENKINS_URL="https://ci.example.org").exit_code == 0
    html = Path("nightjar-summary.html").read_text()
    assert html.startswith("<!doctype html>")
    assert "<code>not today &lt;b&gt;</code>" in html
    assert "<b>" not in html
    assert html.count("<ul>\n<li>") == html.count("</li>\n</ul>") == 4
    for _ in range(2):
        assert report(pytester.path, "report.xml", "--summary", GITLAB_CI="true").exit_code == 0
    assert Path("nightjar-summary.md").read_text() == ended.stdout
    assert report(pytester.path, "report.xml", "--summary").exit_code == 2

    Path("broken.xml").write_text("<testsuites><testcase")
    broken = report(pytester.path, "report.xml", "broken.xml", "nosuch.xml")
    assert broken.exit_code == 1
    assert "2 tests ran" in broken.stdout
    assert broken.stdout.count("A report could not be read: ") == 2


def test_the_reasons_of_the_plugin_have_their_kinds() -> None:
    values = {"value": "1", "level": "nightly", "run": "main", "name": "cuda", "probe": "no", "variable": "V"}
    values |= {"where": "conftest.py", "names": "llvm", "kind": "cuda"}
    kinds = {
        SkipKind.LEVEL: (run_texts.SLOW_SKIPPED, run_texts.LEVEL_SKIPPED),
        SkipKind.DEVICE: (texts.NO_DEVICE,),
        SkipKind.TARGET: (texts.NOT_ENABLED, texts.OTHER_TARGETS, texts.UNKNOWN_TARGET, texts.EXCLUDED),
        SkipKind.OTHER: ("", "no reason"),
    }
    for kind, reasons in kinds.items():
        assert {kind_of(reason.format(**values)) for reason in reasons} == {kind}
    assert kind_of(texts.ALL_EXCLUDED.format(**values)) is SkipKind.TARGET
