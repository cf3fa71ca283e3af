"""Docker update: a pull request with the newest tags of CI's images, kept up to date, and closed once main has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.app.registration import PERMISSIONS
from bot.core.schedule import Daily
from bot.timers.timers import TIMER_EVENT
from sandbox import PullRequest
from sandbox.registry import RegistrySandbox
from tests.conversations.lab import Moments
from tests.conversations.town import BOT, Town, town

FILE, BRANCH = "ci/jenkins/docker-images.ini", "nightly-docker-update"
REPO = "/repos/{owner}/{repo}"
OLD, NEW, NEWER = "20260101-060115-61c9742ea", "20260201-060115-7a2b3c4d", "20260202-060115-8b3c4d5e"
CONFIG = """
repositories:
  octocat/compiler:
    slow_tests: false
    docker_update: {registry: "%s"}
"""
EACH = f"""\
# Read when CI begins.

[jenkins]
ci_arm: tlcpack/ci-arm:{OLD}
ci_cpu: tlcpack/ci-cpu:{OLD}
"""
SHARED = f"[jenkins]\r\nci_tag: {OLD}\r\nci_arm: tlcpack/ci-arm:%(ci_tag)s\r\nci_cpu: tlcpack/ci-cpu:%(ci_tag)s\r\n"
DAYS = {OLD: "2026-01-01T08:00:00.1Z", NEW: "2026-02-01T08:00:00Z", NEWER: "2026-02-02T08:00:00.123456Z"}


@dataclass
class ImageTown:
    """A town whose images are updated when a test says so."""

    town: Town
    time: Moments
    hub: RegistrySandbox

    async def nightly_run(self) -> None:
        """Advance the time to the next nightly update, and wait until the bot has finished it."""
        self.time.ahead += Daily("00:00", "UTC").next_time(self.time()) + 1 - self.time()
        await self.town.bot.timers.tick()
        await self.town.quiet()

    def release(self, *images: str, tag: str, namespace: str = "tlcpack") -> None:
        """Push images to the registry."""
        for image in images:
            self.hub.push(f"{namespace}/{image}", tag, DAYS[tag])

    @property
    def pulls(self) -> list[PullRequest]:
        """Return the bot's pull requests."""
        return [pull for pull in self.town.repo.pulls if pull.user.login == BOT]

    @property
    def file(self) -> str:
        """Return the file on the bot's branch."""
        return self.town.repo.git.commits[self.town.repo.branch(BRANCH)].files[FILE]

    async def last_run(self) -> tuple[str, str]:
        """Return how the last run ended, and why."""
        runs = [
            record
            for record in await self.town.bot.engine.journal.recent(limit=500)
            if record.event == TIMER_EVENT.name
        ]
        return runs[0].state, runs[0].reason


@asynccontextmanager
async def image_town(url: str, text: str = EACH, **options: object) -> AsyncIterator[ImageTown]:
    hub, moments = RegistrySandbox(), Moments()
    async with hub.serve() as address:
        config = CONFIG % address
        async with town(url, config=config, now=moments, files={FILE: text}, **options) as plain_town:  # type: ignore[arg-type]
            await plain_town.bot.timers.tick()
            await plain_town.quiet()
            place = ImageTown(plain_town, moments, hub)
            place.release("ci-arm", "ci-cpu", tag=OLD)
            yield place


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/nightjar.db"


@pytest.fixture
async def place(url: str) -> AsyncIterator[ImageTown]:
    async with image_town(url) as place:
        yield place


async def test_newer_tags_are_proposed_updated_in_place_and_closed_once_main_has_them(place: ImageTown) -> None:
    """TVM #13572, #19445, #18710:

    the pull requests changed a file that CI did not read; #18717: all line endings changed.
    """
    place.release("ci_arm", tag=NEW, namespace="tlcpackstaging")
    await place.nightly_run()
    (pull,) = place.pulls
    assert (pull.title, pull.base_ref, pull.state) == (
        "[ci][docker] Update images to their newest tags",
        "main",
        "open",
    )
    assert f"| `ci_arm` | `tlcpack/ci-arm:{OLD}` | `tlcpack/ci-arm:{NEW}` |" in (pull.body or "")
    assert place.file == EACH.replace(f"ci-arm:{OLD}", f"ci-arm:{NEW}")
    assert [(change.path, change.additions, change.deletions) for change in pull.files] == [(FILE, 1, 1)]
    place.release("ci-cpu", tag=NEWER)
    await place.nightly_run()
    assert place.pulls == [pull]
    assert len(pull.commits) == 1
    assert place.file == EACH.replace(f"ci-arm:{OLD}", f"ci-arm:{NEW}").replace(f"ci-cpu:{OLD}", f"ci-cpu:{NEWER}")
    assert f"| `ci_cpu` | `tlcpack/ci-cpu:{OLD}` | `tlcpack/ci-cpu:{NEWER}` |" in (pull.body or "")
    place.town.repo.push("main", {FILE: place.file}, by="octocat")
    await place.nightly_run()
    assert pull.state == "closed"
    assert f"refs/heads/{BRANCH}" not in place.town.repo.refs
    assert await place.last_run() == ("done", "no newer tags for any of 2 images")


async def test_images_that_share_a_tag_get_one_that_all_of_them_have(url: str) -> None:
    async with image_town(url, SHARED) as place:
        place.release("ci-arm", tag=NEWER)
        await place.nightly_run()
        assert place.pulls == []
        place.release("ci-arm", "ci-cpu", tag=NEW)
        await place.nightly_run()
        assert place.file == SHARED.replace(OLD, NEW)


async def test_nothing_is_written_when_nothing_is_new(place: ImageTown) -> None:
    """TVM's `git commit` failed when nothing had changed, and the run was red."""
    await place.nightly_run()
    assert await place.last_run() == ("done", "no newer tags for any of 2 images")
    place.release("ci-arm", tag=NEW)
    await place.nightly_run()
    written = len(place.town.github.requests.writes)
    await place.nightly_run()
    await place.nightly_run()
    assert len(place.town.github.requests.writes) == written
    assert await place.last_run() == ("done", "newer tags for 1 of 2 images")


async def test_an_image_without_tags_is_reported(url: str) -> None:
    """TVM's script ended in an IndexError, and no other image was updated."""
    async with image_town(url, f"{EACH}ci_lint: tlcpack/ci-lint:{OLD}\n") as place:
        place.release("ci-arm", tag=NEW)
        place.hub.push("tlcpack/ci-lint", "latest")
        await place.nightly_run()
        (pull,) = place.pulls
        assert "Not updated: `tlcpack/ci-lint` has no tag such as " in (pull.body or "")
        assert place.file == EACH.replace(f"ci-arm:{OLD}", f"ci-arm:{NEW}") + f"ci_lint: tlcpack/ci-lint:{OLD}\n"


async def test_the_bot_does_not_undo_pushes_or_closings_by_people(place: ImageTown) -> None:
    place.release("ci-arm", tag=NEW)
    await place.nightly_run()
    (pull,) = place.pulls
    pull.close("octocat")
    await place.nightly_run()
    assert [(pull_request.number, pull_request.state) for pull_request in place.pulls] == [(pull.number, "closed")]
    place.release("ci-arm", tag=NEWER)
    await place.nightly_run()
    newer = place.pulls[-1]
    assert newer.state == "open"
    pushed_sha = newer.push({FILE: "[jenkins]\n"}, by="octocat").sha
    place.release("ci-cpu", tag=NEWER)
    await place.nightly_run()
    assert place.town.repo.branch(BRANCH) == pushed_sha
    assert "Somebody else pushed to `nightly-docker-update`, so I no longer change it" in (newer.body or "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, f"there is no file `{FILE}` on `main`; set docker_update.file in app.yaml to the file that CI reads"),
        ("[other]\n", "the file of images has no section [jenkins]"),
        ("# " + "x" * 70_000, f"`{FILE}` is not a text file, or is larger than 64 KiB, so its images cannot be read"),
    ],
    ids=["no file", "no section", "too long"],
)
async def test_the_run_reports_what_prevents_an_update(url: str, text: str | None, reason: str) -> None:
    async with image_town(url) as place:
        place.town.repo.push("main", {FILE: text}, by="octocat")
        await place.nightly_run()
        assert await place.last_run() == ("failed", reason)
        (timer,) = (await place.town.ask("/api/v1/repos/octocat/compiler/timers"))[2]["timers"]
        assert (timer["name"], timer["outcome"], timer["reason"]) == ("docker-update", "failed", reason)


async def test_a_registry_that_refuses_is_not_taken_for_one_without_tags(place: ImageTown) -> None:
    place.release("ci-arm", tag=NEW)
    place.hub.faults.add("GET", "*", status=403, skip=1)
    await place.nightly_run()
    state, reason = await place.last_run()
    assert (state, place.pulls) == ("failed", [])
    assert "127.0.0.1 answered 403 to GET /v2/repositories/" in reason


async def test_a_missing_permission_fails_the_run(url: str) -> None:
    async with image_town(url, permissions={**PERMISSIONS, "pull_requests": "read"}) as place:
        place.release("ci-arm", tag=NEW)
        await place.nightly_run()
        assert (await place.last_run())[0] == "failed"


async def test_a_file_without_our_images_is_left_alone(url: str) -> None:
    async with image_town(url, "[jenkins]\nci_x: octocat/x:1\n") as place:
        await place.nightly_run()
        assert (await place.last_run())[0] == "done"
        assert place.hub.requests == []


async def test_the_cost_of_an_update_is_fixed(place: ImageTown) -> None:
    await place.nightly_run()  # looks up the bot's own account and repository, once
    counts: list[Counter[str]] = []
    for tag in (OLD, NEW, NEW, NEWER):
        place.release("ci-arm", tag=tag)
        await place.town.quiet()
        place.town.github.requests.clear()
        place.hub.requests.clear()
        await place.nightly_run()
        requests = place.town.github.requests.of_installation
        file_requests = [request for request in requests if "/contents/" not in request.path or FILE in request.path]
        counts.append(Counter(f"{request.method} {request.route.removeprefix(REPO)}" for request in file_requests))
        assert len(place.hub.requests) == 4, "each image in both namespaces"
    unchanged = {"GET /git/ref/{ref}": 2, "GET /contents/{path}": 1, "GET /pulls": 1}
    commit = {"GET /git/commits/{commit_sha}": 1, "POST /git/trees": 1, "POST /git/commits": 1}
    second_read = {"GET /git/ref/{ref}": 3, "GET /contents/{path}": 2, "GET /pulls": 1}
    assert counts == [
        unchanged,
        {**unchanged, "GET /git/ref/{ref}": 3, **commit, "POST /git/refs": 1, "POST /pulls": 1},
        {**unchanged, "GET /contents/{path}": 2},
        {**second_read, **commit, "PATCH /git/refs/{ref}": 1, "PATCH /pulls/{pull_number}": 1},
    ]
