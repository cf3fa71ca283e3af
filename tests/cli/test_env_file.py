"""`nightjar.env`: what it may contain, and that no value of it is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.env_file import LARGEST_ENV_FILE, add_to_environment, read_env_file
from bot.config.environment import Settings
from bot.config.private_key import one_line
from bot.core.errors import SettingsError
from tests.config.test_environment import PEM
from tests.running import run

TEXT = """\
# made by the set-up
GITHUB_APP_ID=12345

export GITHUB_API_URL = "https://github.example.com/api/v3"
SLACK_WEBHOOK_URL='https://hooks.example.com/a=b#c'
EMPTY=
"""


def test_lines_are_read_as_shells_and_containers_do(tmp_path: Path) -> None:
    path = tmp_path / "nightjar.env"
    path.write_text(TEXT)
    assert read_env_file(path) == {
        "GITHUB_APP_ID": "12345",
        "GITHUB_API_URL": "https://github.example.com/api/v3",
        "SLACK_WEBHOOK_URL": "https://hooks.example.com/a=b#c",
        "EMPTY": "",
    }
    assert read_env_file(tmp_path / "other.env") == {}


def test_an_invalid_line_is_named_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "nightjar.env"
    path.write_text("A=1\nsesame-key\n1X=sesame\n")
    with pytest.raises(SettingsError) as caught:
        read_env_file(path)
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [f"{path}:2", f"{path}:3"]
    assert "sesame" not in str(caught.value)


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: is a directory"):
        read_env_file(tmp_path)
    (tmp_path / "large").write_bytes(b"#" * (LARGEST_ENV_FILE + 1))
    with pytest.raises(SettingsError, match="is larger than 256 KiB"):
        read_env_file(tmp_path / "large")


def test_variables_of_the_environment_win_over_the_file() -> None:
    environ = {"A": "of the environment", "B": " "}
    add_to_environment({"A": "1", "B": "2", "C": "3"}, environ)
    assert environ == {"A": "of the environment", "B": "2", "C": "3"}


def test_a_key_may_be_one_line() -> None:
    line = one_line(PEM)
    assert set(line) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    variables = {"GITHUB_APP_ID": "1", "GITHUB_PRIVATE_KEY": line, "GITHUB_WEBHOOK_SECRET": "sesame-sesame-01"}
    assert Settings.from_environment(variables).private_key.get_secret_value() == PEM


async def test_commands_read_the_file(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("repositories:\n  octocat/compiler:\n")
    (tmp_path / "nightjar.env").write_text("GITHUB_WEBHOOK_SECRET=sesame\n")
    finished = await run("worker", env={}, cwd=tmp_path)
    assert "GITHUB_WEBHOOK_SECRET has a secret of fewer than 16 characters" in finished.err
    elsewhere = await run("doctor", "--env-file", "other.env", env={}, cwd=tmp_path)
    assert "GITHUB_WEBHOOK_SECRET is not set" in elsewhere.err


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_a_key_may_have_several_lines(quote: str, tmp_path: Path) -> None:
    path = tmp_path / "nightjar.env"
    path.write_text(f"A=1\nGITHUB_PRIVATE_KEY={quote}{PEM.strip()}{quote}\nB=2\n")
    assert read_env_file(path) == {"A": "1", "GITHUB_PRIVATE_KEY": PEM.strip(), "B": "2"}


def test_a_value_that_does_not_end_is_named_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "nightjar.env"
    for value in ('"sesame', "-----BEGIN RSA PRIVATE KEY-----\nsesame"):
        path.write_text(f"A=1\nB={value}\nC=2\n")
        with pytest.raises(SettingsError, match=f"{path}:2: ") as caught:
            read_env_file(path)
        assert "sesame" not in str(caught.value)
