from __future__ import annotations

from handlers.changed_files.changes import changes_of_other_commit


def test_changes_of_another_commit_are_unknown_and_the_reason_names_both() -> None:
    text = changes_of_other_commit("a" * 40, "b" * 40).reason
    assert "a" * 7 in text
    assert "b" * 7 in text
    assert "a" * 40 not in text
