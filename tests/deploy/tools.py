"""Run other projects' programs on the files of deploy/."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.running import ROOT
from tests.waiting import DEADLINE

CHART = ROOT / "deploy/chart"
ALERTS = CHART / "files/alerts.yaml"
DASHBOARD = CHART / "files/dashboard.json"
UNIT = ROOT / "deploy/systemd/nightjar.service"
COMPOSE = ROOT / "compose.yaml"


def run(name: str, *arguments: str | os.PathLike[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program installed on the machine or by scripts/deploy-tools-for-tests."""
    path = shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)
    if path is None and name == "systemd-analyze":
        pytest.skip("this machine has no systemd")
    if path is None:
        pytest.fail(f"these tests need {name}: run scripts/deploy-tools-for-tests", pytrace=False)
    return subprocess.run([path, *arguments], cwd=cwd, capture_output=True, text=True, timeout=DEADLINE)


def promtool(*arguments: str | os.PathLike[str], cwd: Path | None = None) -> str:
    """Return the output of promtool; fail if it finds a fault."""
    done = run("promtool", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def helm(*arguments: str | os.PathLike[str]) -> str:
    """Return the output of Helm; fail if it finds a fault."""
    done = run("helm", *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(*settings: str) -> subprocess.CompletedProcess[str]:
    """Render the chart as a release named nightjar; `key=@file` sets a value to the content of a file."""
    options = (("--set-file" if "=@" in setting else "--set", setting.replace("=@", "=")) for setting in settings)
    return run("helm", "template", "nightjar", CHART, *chain.from_iterable(options), cwd=ROOT)
