"""A lab's folder with results, and the commands that check and upload them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.cli.results.group import results
from tests.bucket import World

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
JUNIT = '<testsuite name="ops"><testcase classname="test_ops" name="test_add" time="0.1"/></testsuite>'
RUN = f"results/octocat/compiler/example-lab/adreno/{SHA}/run-1/"
APP_YAML = """
repositories:
  octocat/compiler:
    results:
      bucket: {bucket}
      prefix: device/
      labs: {{example-lab: {{targets: [adreno]}}}}
"""
OPTIONS = {
    "--repository": "octocat/compiler",
    "--lab": "example-lab",
    "--target": "adreno",
    "--sha": SHA,
    "--suite": "operators",
    "--run-id": "run-1",
}
OURS = ("GITHUB_", "DATABASE_", "NIGHTJAR_")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a lab's folder, in which the commands run: one good file, and nothing else."""
    (tmp_path / "ops.xml").write_text(JUNIT)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    return tmp_path


def arguments(*words: str, **options: Any) -> list[str]:
    """Return the arguments that upload ops.xml; `options` replace the defaults, None leaves one out."""
    all_options = {**OPTIONS, **{f"--{name.replace('_', '-')}": value for name, value in options.items()}}
    option_words = [part for name, value in all_options.items() if value is not None for part in (name, str(value))]
    return ["upload", *option_words, *(words or ("ops.xml",))]


def nightjar(*words: str, env: dict[str, str] | None = None) -> Result:
    """Run `nightjar results` in this process."""
    finished = CliRunner().invoke(results, words, env=env)
    assert finished.exception is None or isinstance(finished.exception, SystemExit), finished.exception
    return finished


def upload(world: World | None, *words: str, env: dict[str, str] | None = None, **options: Any) -> Result:
    if world is not None:
        options.setdefault("bucket", world.name)
    return nightjar(*arguments(*words, **options), env=env)


def content(world: World) -> dict[str, bytes]:
    listed = world.s3.list_objects_v2(Bucket=world.name).get("Contents", [])
    return {item["Key"]: world.s3.get_object(Bucket=world.name, Key=item["Key"])["Body"].read() for item in listed}
