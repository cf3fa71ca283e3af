"""The kit on machines that are not ours: Windows, old Pythons, a machine without boto3."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.kit.running import ROOT, kit_environment

JUNIT = '<testsuite name="ops"><testcase classname="test_ops" name="test_add" time="0.1"/></testsuite>'
WINDOWS = """
import asyncio, os, random, shutil, signal, subprocess, sys, tempfile
for name in ("fcntl", "grp", "pwd", "resource", "syslog", "termios"):
    sys.modules[name] = None
for module, names in (
    (os, "O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC fork fwalk getuid killpg register_at_fork setsid"),
    (signal, "SIGALRM SIGKILL SIGHUP SIGUSR1 ITIMER_REAL setitimer alarm pthread_sigmask"),
):
    for name in names.split():
        delattr(module, name)
os.supports_dir_fd.clear()
"""
"""Takes from Python what it lacks on Windows, after modules of its own that use it here."""
WITHOUT_BOTO3 = "import sys; sys.modules['boto3'] = sys.modules['botocore'] = None\n"
RUN_KIT = "from nightjar_lab.main import main; main(sys.argv[1:])"
SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"


def kit_after(preparation: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `nightjar-lab` in a Python that a script has prepared."""
    command: Sequence[str] = [sys.executable, "-c", preparation + RUN_KIT, *words]
    env = {**kit_environment(folder), "PYTEST_REPORT": JUNIT}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=folder)


def test_check_run_upload_nightly_and_doctor_need_nothing_that_windows_lacks(tmp_path: Path) -> None:
    report = tmp_path / "te.xml"
    report.write_text(JUNIT)
    checked = kit_after(WINDOWS, "check", "te.xml", folder=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, ""), checked
    target = ("--target", "adreno", "--sha", SHA)
    script = (
        "import os\n"
        "for folder in (os.environ['NIGHTJAR_RESULTS'], '.'):\n"
        "    with open(folder + '/te.xml', 'w') as file: file.write(os.environ['PYTEST_REPORT'])"
    )
    words = ("run", *target, "--dry-run", "--report", "te.xml", "--", sys.executable, "-c", script)
    ran = kit_after(WINDOWS, *words, folder=tmp_path)
    assert ran.returncode == 0, ran
    assert len(json.loads(ran.stdout)["files"]) == 2
    options = ("--suite", "tests", "--bucket", "device-results", "--dry-run")
    uploaded = kit_after(WINDOWS, "upload", *target, *options, "te.xml", folder=tmp_path)
    assert uploaded.returncode == 0, uploaded
    nightly = kit_after(WINDOWS, "nightly", folder=tmp_path)
    assert (nightly.returncode, len(nightly.stderr.splitlines())) == (2, 1), nightly
    doctor = kit_after(WINDOWS, "doctor", folder=tmp_path)
    assert "Traceback" not in doctor.stderr, doctor
    assert "zstd" in doctor.stdout


@pytest.mark.parametrize("command", ["agent", "suite"])
def test_agent_and_suite_say_what_they_need(command: str, tmp_path: Path) -> None:
    done = kit_after(WINDOWS, command, "--help", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {command} needs Linux or macOS, because Python has no module fcntl here")
    assert len(done.stderr.splitlines()) == 1


def test_an_older_python_gets_one_line(tmp_path: Path) -> None:
    done = kit_after("import sys; sys.version_info = (3, 8, 20, 'final', 0)\n", "check", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "nightjar-lab needs Python 3.9 or newer; this is Python 3.8\n")
    # Python 3.6 and older know no `annotations` of the future, and none of them knows assignments within expressions.
    source = (ROOT / "lab/nightjar_lab/__init__.py").read_text()
    compile(source, "__init__.py", "exec", dont_inherit=True)
    assert "__future__" not in source


def test_without_boto3_everything_but_the_bucket_works(tmp_path: Path) -> None:
    (tmp_path / "te.xml").write_text(JUNIT)
    assert kit_after(WITHOUT_BOTO3, "check", "te.xml", folder=tmp_path).returncode == 0
    words = ("upload", "--target", "adreno", "--sha", SHA, "--suite", "tests", "--bucket", "device-results", "te.xml")
    done = kit_after(WITHOUT_BOTO3, *words, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "boto3 is not installed, and uploads to a bucket need it: pip install boto3"
    ), done.stderr
