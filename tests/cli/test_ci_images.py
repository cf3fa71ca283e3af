"""`nightjar ci docker-images`, as a CI step runs it, and which answers it accepts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from bot.cli.ci_images import ATTEMPTS, choose_images, docker_images
from bot.core.errors import UserError
from bot.core.web_json import Reader
from handlers.docker_update.docker_hub import DockerHub
from sandbox.registry import RegistrySandbox
from tests.running import Finished, run

TAG = "20260101-060115-61c9742ea"
ECR = f"012345678901.dkr.ecr.us-west-2.amazonaws.com/ci_cpu:{TAG}"
FILE = f"""\
[jenkins]
ci_tag: {TAG}
ci_arm: tlcpack/ci-arm:%(ci_tag)s
ci_minimal: tlcpack/ci-minimal-cross:{TAG}
ci_ecr: {ECR}
odd: what is this
evil: ghcr.io/tvm/$(touch broken):1
lines: ghcr.io/tvm/ci:1
  touch broken
"""


@pytest.fixture
async def hub() -> AsyncIterator[RegistrySandbox]:
    sandbox = RegistrySandbox()
    async with sandbox.serve():
        yield sandbox


async def ci(folder: Path, hub: RegistrySandbox, *arguments: str) -> Finished:
    """Run the command in this process, which is faster than in a separate one."""
    options = ["--file", str(ini(folder)), "--registry", hub.url, *arguments]
    result = await asyncio.to_thread(CliRunner().invoke, docker_images, options)
    return Finished(result.exit_code, result.stdout, result.stderr.replace(f"{folder}/", ""))


def ini(folder: Path) -> Path:
    (folder / "images.ini").write_text(FILE)
    return folder / "images.ini"


async def test_an_existing_image_is_used_and_for_a_missing_one_its_staging_image(
    tmp_path: Path, hub: RegistrySandbox
) -> None:
    hub.push("tlcpack/ci-arm", TAG)
    ini(tmp_path)
    arguments = ("ci_arm", "ci_minimal", "CI_ECR", "--file", "images.ini", "--output-dir", ".docker-image-names")
    ended = await run("ci", "docker-images", *arguments, env={"NIGHTJAR_REGISTRY": hub.url}, cwd=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        f"ci_arm=tlcpack/ci-arm:{TAG}",
        f"ci_minimal=tlcpackstaging/ci_minimal_cross:{TAG}",
        f"CI_ECR={ECR}",
    ]
    written = {file.name: file.read_text() for file in (tmp_path / ".docker-image-names").iterdir()}
    assert written == dict(line.split("=") for line in ended.out.splitlines())
    assert len(hub.requests) == 2, "Amazon's registry is not asked"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ci_cpu: tlcpack/ci-cpu:1\n", "images cannot be read: File contains no section headers."),
        (
            "[jenkins]\nci_cpu: tlcpack/ci-cpu:%(ci_tag)s\n",
            "images cannot be read: Bad value substitution: option 'ci_cpu'",
        ),
        ("[other]\n", "images has no section [jenkins]\n"),
    ],
)
def test_a_file_without_images_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "odd.ini").write_text(text)
    ended = CliRunner().invoke(docker_images, ["ci_cpu", "--file", str(tmp_path / "odd.ini")])
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{tmp_path}/odd.ini: the file of {message}")
    assert ended.stderr.count("\n") == 1


async def test_lookup_only_prints_the_images_of_the_file_without_a_request(
    tmp_path: Path, hub: RegistrySandbox
) -> None:
    assert (await ci(tmp_path, hub, "--lookup-only", "ci_arm")).out == f"tlcpack/ci-arm:{TAG}\n"
    images = json.loads((await ci(tmp_path, hub, "--lookup-only", "--json", "ci_arm", "ci_ecr")).out)
    assert images == {"ci_arm": f"tlcpack/ci-arm:{TAG}", "ci_ecr": ECR}
    assert hub.requests == []


async def test_an_error_of_the_registry_is_an_error_and_writes_nothing(tmp_path: Path, hub: RegistrySandbox) -> None:
    """TVM took a limit or a failure of the registry for a missing image, and tested with other images."""
    hub.faults.add("GET", "*", status=429, headers={"Retry-After": "0"}, times=None)
    ended = await ci(tmp_path, hub, "ci_arm", "--output-dir", str(tmp_path / "names"))
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == f"127.0.0.1 is limiting our requests for now; gave up after {ATTEMPTS} attempts\n"
    assert not (tmp_path / "names").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["nothing"], 1, "images.ini has no image nothing; available: ci_tag, ci_arm, ci_minimal, ci_ecr, odd,"),
        (["odd"], 1, "odd is what is this in images.ini; write an image as NAMESPACE/NAME:TAG\n"),
        (["ci_arm", "evil"], 1, "evil is ghcr.io/tvm/$(touch broken):1 in images.ini; write an image as"),
        (["lines", "--lookup-only"], 1, "lines is ghcr.io/tvm/ci:1"),
        (["ci_arm", "--file", "/no.ini"], 1, "/no.ini cannot be read (no such file or directory)"),
        (["ci_arm", "--registry", "http://example.org"], 2, "must start with https://"),
        (["ci_arm", "--output-dir", __file__], 2, " is a file"),
        (["../ci_arm"], 2, "must be the name of an image in the file, as in ci_cpu"),
        ([], 2, "Missing argument 'NAME...'"),
    ],
)
async def test_a_failure_is_an_error(
    tmp_path: Path, hub: RegistrySandbox, arguments: list[str], status: int, error: str
) -> None:
    ended = await ci(tmp_path, hub, *arguments)
    assert (ended.status, ended.out) == (status, "")
    assert error in ended.err


@pytest.mark.parametrize(
    ("headers", "status", "waits"),
    [({}, 500, [2.0, 4.0, 8.0]), ({"Retry-After": "7"}, 429, [7.0, 7.0, 7.0]), ({"Retry-After": "600"}, 429, [])],
)
async def test_a_busy_registry_is_asked_again_after_the_pause_that_it_wants(
    hub: RegistrySandbox, headers: dict[str, str], status: int, waits: list[float]
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    hub.push("tlcpack/ci-arm", TAG)
    async with aiohttp.ClientSession() as session:
        registry = DockerHub(Reader(session), hub.url)
        images = {"ci_arm": f"tlcpack/ci-arm:{TAG}"}
        hub.faults.add("GET", "*", status=status, headers=headers, times=2 if waits else 1)
        if waits:
            assert await choose_images(images, registry, "tlcpackstaging", sleep) == images
            assert waited == waits[:2]
            hub.faults.add("GET", "*", status=status, headers=headers, times=None)
            waited.clear()
        else:
            hub.faults.add("GET", "*", status=status, headers=headers, times=None)
        with pytest.raises(
            UserError, match="gave up after 4 attempts" if waits else "asks us to wait 600 s, which is too long"
        ):
            await choose_images(images, registry, "tlcpackstaging", sleep)
    assert waited == waits
