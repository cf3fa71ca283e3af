"""The demo's foundations: its story, its pictures, and a contributor's commit in the lab's mirror."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from sandbox import GitHubSandbox
from sandbox.demo import two_weeks as story
from sandbox.demo.__main__ import has_browser, listed
from sandbox.demo.images import IMAGES, NAMES, SUITE_IMAGE, browser
from sandbox.demo.mirror import AUTHOR, Mirror, push_to_fork
from sandbox.demo.promises import Promise
from tests.running import ROOT
from tests.waiting import DEADLINE

PICTURE = re.compile(r"images/([\w-]+\.png)")


def test_the_story_is_the_same_each_time_and_has_each_event() -> None:
    outcomes = {
        (target, suite, night): {
            case.get("name", ""): "failed" if case.find("failure") is not None else "ok"
            for case in ElementTree.fromstring(story.report(lab, target, suite, night)).iter("testcase")
        }
        for (lab, target), suites in story.SUITES.items()
        for suite in suites
        for night in range(story.NIGHTS)
    }

    def failing(target: str, suite: str, test: str) -> list[int]:
        return [night for night in range(story.NIGHTS) if outcomes[target, suite, night].get(test) == "failed"]

    assert story.report(story.LAB, story.TARGET, story.RUNTIME, 3) == story.report(
        story.LAB, story.TARGET, story.RUNTIME, 3
    )
    assert failing(story.TARGET, story.OPERATORS, "test_gather[int8-1x128]") == [11, 12, 13]
    assert failing(story.TARGET, story.OPERATORS, "test_softmax[float16-1x128]") == [13]
    assert failing(story.SIMULATOR, story.OPERATORS, "test_softmax[float16-1x128]") == []
    assert failing(story.TARGET, story.RUNTIME, story.FLAKY[1]) == list(story.FLAKY_NIGHTS)
    assert failing(story.BOARD, story.RUNTIME, story.QUARANTINED[1]) == list(range(story.NIGHTS))
    broken = outcomes[story.GPU, story.OPERATORS, story.BROKEN_NIGHT]
    assert set(broken.values()) == {"ok", "failed"}
    kernels = [story.report(story.LAB, story.TARGET, story.KERNELS, night) for night in (10, 11)]
    assert [report.count('value="0 nodes higher"') for report in kernels] == [0, 1]
    assert [story.RENAMED[1][1] in outcomes[story.BOARD, story.RUNTIME, night] for night in (5, 6)] == [False, True]


def test_the_addresses_of_the_pages_are_below_each_other() -> None:
    lines = listed([Promise("The grid", "http://a", "b", ""), Promise("Simulator and device", "http://c", "d", "")])
    assert {line.index("http://") for line in lines.splitlines()} == {24}


def test_the_test_files_are_valid_python_and_fail_at_the_line_of_the_tracebacks() -> None:
    for path, text in story.test_files().items():
        ast.parse(text)
        assert "assert_allclose" in text.splitlines()[story.ASSERTED_AT - 1], path


def test_each_picture_in_the_docs_is_made_by_make_images_or_the_suite_demo() -> None:
    made = {f"{name}.png" for name in (*NAMES, SUITE_IMAGE)}
    files = [ROOT / "README.md", ROOT / "lab" / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {image for file in files for image in PICTURE.findall(file.read_text(encoding="utf-8"))}
    assert shown == made
    assert {path.name for path in IMAGES.iterdir()} == made


@pytest.mark.parametrize(
    ("environment", "platform", "opens"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({"DISPLAY": ":0", "CI": "true"}, "linux", False),
        ({}, "darwin", True),
        ({"CI": "1"}, "darwin", False),
    ],
)
def test_a_browser_is_opened_only_where_somebody_sees_it(
    environment: dict[str, str], platform: str, opens: bool
) -> None:
    assert has_browser(environment, platform) is opens


async def test_screenshots_name_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(click.ClickException, match="Install it and a font with emoji"):
        async with browser():
            pass


async def test_a_browser_that_a_shell_script_starts_stops_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's chromium-headless-shell is such a script: without it, Chromium would run on and keep the pipe open."""
    program = tmp_path / "chromium"
    listening = "echo DevTools listening on ws://127.0.0.1:1/x >&2"
    program.write_text(f"#!/bin/sh\n/bin/sh -c '{listening}; /bin/sleep {2 * DEADLINE:.0f}; :'\n:\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    async with asyncio.timeout(DEADLINE), browser():
        pass


def test_a_contributors_commit_has_the_same_sha_in_the_labs_mirror(tmp_path: Path) -> None:
    repo = GitHubSandbox().create_repository("octocat/compiler", files={"README.md": "# Compiler\n"})
    sha = push_to_fork(repo, Mirror(tmp_path), "faster", {"src/tile.cc": "// Tiles.\n"}, "Tile")
    pull = repo.open_pull_request(AUTHOR, "Tile", branch="faster", fork=True)
    assert pull.head_sha == sha
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", sha], cwd=tmp_path, capture_output=True, text=True)
    assert listed.stdout.split() == ["README.md", "src/tile.cc"]
    assert [change.path for change in pull.files] == ["src/tile.cc"]


def test_the_demos_bot_hands_jobs_out_again_after_seconds() -> None:
    # In a separate process, because the shortened times apply to all of it.
    program = (
        "from sandbox.demo.bot import shorten; shorten();"
        "from handlers.device_tests import feature, model, transitions;"
        "print(feature.JOBS_TICK, model.LEASE_SECONDS, transitions.LEASE_SECONDS)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "* * * * * */2 5.0 5.0"
