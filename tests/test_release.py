"""`scripts/release`: what is uploaded is the same for one commit, is complete, and names nothing of this machine."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.running import ROOT

ADDRESS = "https://git.example.org/octocat/nightjar"
SOURCES = ("bot", "handlers", "lab", "deploy/chart")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "requirements.txt")
GIT = {
    "GIT_AUTHOR_NAME": "octocat",
    "GIT_AUTHOR_EMAIL": "octocat@example.org",
    "GIT_COMMITTER_NAME": "octocat",
    "GIT_COMMITTER_EMAIL": "octocat@example.org",
    "GIT_AUTHOR_DATE": "2026-11-20T05:10:00Z",
    "GIT_COMMITTER_DATE": "2026-11-20T05:10:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]  # type: ignore[index]
# Only one process builds.
pytestmark = [pytest.mark.xdist_group("release"), pytest.mark.no_cover]


def checkout(folder: Path, *, sources: bool = True) -> Path:
    """Make a repository with one commit of what a release is built from."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for name in SOURCES if sources else ("deploy/chart",):
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for name in (*FILES, "scripts/release", "lab/pyproject.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "Everything"]):
        subprocess.run(["git", *words], cwd=folder, env=os.environ | GIT, check=True)
    return folder


def release(folder: Path, *words: str, umask: int = 0o022, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a checkout."""
    command = [sys.executable, str(folder / "scripts/release"), *words]
    return subprocess.run(
        command, cwd=folder, env=os.environ | GIT | variables, umask=umask, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a commit where folder, time zone and umask are unusual; return the folder of what was built."""
    return build(tmp_path_factory.mktemp("release") / "a longer name", umask=0o077, zone="Asia/Tokyo")


def build(home: Path, *, umask: int, zone: str) -> Path:
    """Build a commit in a folder; return the folder of what was built."""
    output = home.with_name(f"{home.name} built")
    done = release(checkout(home), "build", str(output), "--repository", ADDRESS, umask=umask, TZ=zone)
    assert done.returncode == 0, done.stderr
    return output


def metadata_of(folder: Path, package: str) -> Message:
    """Return the metadata of a wheel."""
    with ZipFile(folder / f"{package}-{VERSION}-py3-none-any.whl") as wheel:
        return Parser().parsestr(wheel.read(f"{package}-{VERSION}.dist-info/METADATA").decode())


@pytest.mark.exhaustive
def test_the_same_commit_gives_the_same_bytes(released: Path, tmp_path: Path) -> None:
    folders = (build(tmp_path / "one", umask=0o022, zone="UTC"), released)
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert sorted(first) == sorted(
        [
            "SHA256SUMS",
            f"nightjar-ci-{VERSION}.cdx.json",
            f"nightjar-lab-{VERSION}.cdx.json",
            f"nightjar_ci-{VERSION}-py3-none-any.whl",
            f"nightjar_ci-{VERSION}.tar.gz",
            f"nightjar_lab-{VERSION}-py3-none-any.whl",
            f"nightjar_lab-{VERSION}.tar.gz",
        ]
    )
    assert [name for name, content in first.items() if second.get(name) != content] == []


def test_the_server_requires_exactly_its_version_of_the_kit(released: Path) -> None:
    required = metadata_of(released, "nightjar_ci").get_all("Requires-Dist", [])
    assert [line for line in required if "nightjar" in line or "@" in line] == [f"nightjar-lab=={VERSION}"]


@pytest.mark.parametrize(
    ("package", "classifier"), [("nightjar_ci", "Framework :: AsyncIO"), ("nightjar_lab", "Framework :: Pytest")]
)
def test_the_metadata_say_whose_it_is_and_where(released: Path, package: str, classifier: str) -> None:
    metadata = metadata_of(released, package)
    assert classifier in metadata.get_all("Classifier", [])
    assert (metadata["Author"], metadata["License-Expression"]) == ("The Nightjar authors", "Apache-2.0")
    assert f"Source, {ADDRESS}" in metadata.get_all("Project-URL", [])
    assert metadata.get_all("License-File") == ["LICENSE"]


def test_no_address_is_in_a_package_that_nobody_named_one_for() -> None:
    """An address that nobody has yet is one that anybody may take."""
    for folder in (ROOT, ROOT / "lab"):
        assert "://" not in (folder / "pyproject.toml").read_text(encoding="utf-8")


def test_a_bill_of_materials_names_the_wheel_and_all_that_is_locked(released: Path) -> None:
    bill: dict[str, Any] = json.loads((released / f"nightjar-ci-{VERSION}.cdx.json").read_text())
    [digest] = bill["metadata"]["component"]["hashes"]
    wheel = released / f"nightjar_ci-{VERSION}-py3-none-any.whl"
    assert digest == {"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    pins = dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    named = {component["name"]: component["version"] for component in bill["components"]}
    assert named == {**pins, "nightjar-lab": VERSION}
    refs = {component["bom-ref"] for component in bill["components"]}
    assert {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]} == refs


def test_digests_are_those_of_the_files(released: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=released, check=True)


def test_a_version_goes_into_packages_chart_and_changelog_and_is_signed(tmp_path: Path) -> None:
    here = checkout(tmp_path / "here", sources=False)
    refused = release(here, "tag")
    assert (refused.returncode, refused.stderr) == (1, f"CHANGELOG.md has no section of {VERSION}\n")
    assert release(here, "prepare", "1").stderr == "1 is no version, as in 0.2.0 or 0.2.0rc1\n"
    unreleased = release(here, "notes").stdout
    assert unreleased.startswith("### ")
    assert release(here, "prepare", "9.8.7").returncode == 0
    assert release(here, "version").stdout == "9.8.7\n"
    assert release(here, "notes", "9.8.7").stdout == unreleased
    assert release(here, "notes").stderr == "CHANGELOG.md has no section of Unreleased\n"
    subprocess.run(["git", "commit", "--all", "--quiet", "-m", "9.8.7"], cwd=here, env=os.environ | GIT, check=True)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (tmp_path / "signers").write_text(f"octocat@example.org {key.with_suffix('.pub').read_text()}")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", f"{key}.pub"),
        ("gpg.ssh.allowedSignersFile", str(tmp_path / "signers")),
    ):
        subprocess.run(["git", "config", name, value], cwd=here, check=True)
    tagged = release(here, "tag")
    assert tagged.stdout.split() == ["v9.8.7", "lab/action/v9.8.7"], tagged.stderr
    for name in tagged.stdout.split():
        subprocess.run(["git", "verify-tag", name], cwd=here, check=True, capture_output=True)


def test_versions_that_differ_are_refused(tmp_path: Path) -> None:
    here = checkout(tmp_path / "here", sources=False)
    chart = here / "deploy/chart/Chart.yaml"
    chart.write_text(chart.read_text().replace(f"appVersion: {VERSION}", "appVersion: 9.9.9"))
    refused = release(here, "build", str(tmp_path / "built"))
    assert refused.returncode == 1
    assert "deploy/chart/Chart.yaml, appVersion: 9.9.9" in refused.stderr
