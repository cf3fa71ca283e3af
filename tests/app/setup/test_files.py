"""Files that appear complete, once, and readable only by their owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.setup.files import SECRET_MODE, NewFile


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_appears_with_its_mode_and_leaves_no_draft(tmp_path: Path) -> None:
    file = NewFile(tmp_path / "nightjar.env", SECRET_MODE)
    file.reserve("# a note\n")
    assert not file.exists
    assert mode(tmp_path / "nightjar.env.new") == SECRET_MODE
    file.write("A=1\n")
    assert (tmp_path / "nightjar.env").read_text() == "A=1\n"
    assert mode(tmp_path / "nightjar.env") == SECRET_MODE
    assert [path.name for path in tmp_path.iterdir()] == ["nightjar.env"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "nightjar.env"
    file = NewFile(path, SECRET_MODE)
    file.reserve()
    path.write_text("somebody else's")
    with pytest.raises(FileExistsError):
        file.write("A=1\n")
    with pytest.raises(FileExistsError):
        file.reserve()
    assert path.read_text() == "somebody else's"
    path.unlink()
    path.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError):
        file.reserve()


def test_a_draft_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    draft = tmp_path / "nightjar.env.new"
    draft.write_text("old")
    draft.chmod(0o666)
    NewFile(tmp_path / "nightjar.env", SECRET_MODE).reserve()
    assert mode(draft) == SECRET_MODE
    draft.unlink()
    draft.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        NewFile(tmp_path / "nightjar.env", SECRET_MODE).reserve()


def test_only_the_comments_of_a_leftover_file_are_shown(tmp_path: Path) -> None:
    file = NewFile(tmp_path / "nightjar.env", SECRET_MODE)
    assert file.left_behind() is None
    (tmp_path / "nightjar.env.new").write_text("# Delete it at\n# https://github.com/settings/apps\nSECRET=sesame\n")
    assert file.left_behind() == ["Delete it at", "https://github.com/settings/apps"]
    file.discard()
    assert file.left_behind() is None
