"""`make test-changed` finds the tests that guard a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.guards import changed_files, guards


@pytest.mark.parametrize(
    ("changed", "test", "reason"),
    [
        ("bot/core/urls.py", "tests/core/test_urls.py", "imports bot/core/urls.py"),
        ("bot/core/urls.py", "tests/core/test_titles.py", "is in tests/core/"),
        ("bot/core/urls.py", "tests/test_layout.py", "reads all modules"),
        ("handlers/merge/texts.py", "tests/conversations/test_merge.py", "is named like handlers/merge"),
        (
            "lab/nightjar_lab/suite/columns.py",
            "tests/lab/suite/test_reports.py",
            "imports lab/nightjar_lab/suite/columns.py",
        ),
        ("bot/web/static/site.css", "tests/web/test_contrast.py", "is in tests/web/"),
        ("deploy/chart/values.yaml", "tests/deploy/test_chart.py", "is in tests/deploy/"),
        ("tests/conversations/town.py", "tests/conversations/test_rerun.py", "imports tests/conversations/town.py"),
        ("tests/web/conftest.py", "tests/web/test_pages.py", "uses tests/web/conftest.py"),
        ("tests/core/test_urls.py", "tests/core/test_urls.py", "changed"),
        ("docs/labs.md", "tests/test_docs_pages.py", "reads docs/labs.md"),
        ("docs/labs.md", "tests/test_labs_docs.py", "names docs/labs.md"),
    ],
)
def test_a_test_guards_a_change_by_imports_by_folder_or_by_name(changed: str, test: str, reason: str) -> None:
    assert guards([changed])[test] == reason


def test_a_removed_test_guards_nothing_and_others_are_left_out() -> None:
    assert guards(["tests/core/test_removed.py"]) == {}
    tests = guards(["bot/core/titles.py"])
    assert "tests/web/test_contrast.py" not in tests
    assert "tests/conversations/test_merge.py" not in tests


def test_a_change_is_what_a_branch_committed_edited_added_and_removed(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        author = ["-c", "user.name=octocat", "-c", "user.email=octocat@example.com"]
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text(name)
        git("add", ".")
        git("commit", "-m", "A commit")

    git("init", "--initial-branch=main")
    commit("same", "edited", "removed")
    git("branch", "topic")
    commit("on main")
    git("checkout", "topic")
    commit("committed")
    (tmp_path / "edited").write_text("otherwise")
    (tmp_path / "removed").unlink()
    (tmp_path / "new").touch()
    assert changed_files("main", tmp_path) == ["committed", "edited", "new", "removed"]
