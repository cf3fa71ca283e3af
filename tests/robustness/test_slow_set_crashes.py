"""SIGKILL around each request about proposed slow tests: one pull request, each of its files edited once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from bot.results.store.store import ResultsStore
from handlers.slow_tests.config import BRANCH, TIMER
from sandbox.model.pulls import PullRequest
from tests.results.uploads import Upload
from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, packed, points_of, spread
from tests.robustness.place import BOT, open_place, plain
from tests.robustness.side_by_side import SideBySide

FILES = ("tests/test_conv.py", "tests/test_matmul.py", "tests/test_ops.py")
TEXT = "import pytest\n\n\ndef test_long(): ...\n"
MARKED = TEXT.replace("def", "@pytest.mark.slow\ndef")
SECONDS = {f"{path}::test_long": 600.0 for path in FILES}
HOUR = 3600.0


class SlowSet(Conversation):
    """The tests of three files are proposed as slow; main changes, and then people mark them by hand."""

    KEYS: ClassVar[Mapping[str, Any]] = {
        "slow_tests": {"budget": "1m"},
        "owners": [{"test": "tests/*", "owners": ["@triager"]}],
        # No check run is written: GitHub does not know the commits of the stored runs.
        "results": {"labs": {"example-lab": {"targets": ["adreno"]}}, "settle": "12h"},
        "cc_reviewers": False,
        "repository_file": False,
    }

    async def hold(self) -> None:
        """Run the timer on three Mondays."""
        self._push(TEXT)
        await asyncio.to_thread(self._store)
        await self._monday("first")
        await self.until(lambda: self._has(MARKED) and self._reviewers() == ["triager"])
        self._push(f"# Newer\n{TEXT}")
        await self._monday("second")
        await self.until(lambda: self._has(f"# Newer\n{MARKED}"))
        self._push(f"# Newer\n{MARKED}")
        await self._monday("third")
        await self.until(lambda: f"refs/heads/{BRANCH}" not in self.repository.refs)

    def _store(self) -> None:
        """Store a nightly run and one for a pull request, both of which passed."""
        store = ResultsStore(self.place.bot.environment["DATABASE_URL"])
        store.open()
        now = self.place.github.clock.now().timestamp()
        tests = dict.fromkeys(SECONDS, "passed")
        name = self.repository.full_name
        for upload in (
            Upload(1, tests, seconds=SECONDS, at=now - HOUR, repository=name),
            Upload(2, tests, seconds=SECONDS, at=now, repository=name, mainline=False, pull_request=7),
        ):
            assert store.put(upload.run, upload.columns)
        store.close()

    def _push(self, text: str) -> None:
        self.repository.push("main", dict.fromkeys(FILES, text), by="hubot")

    async def _monday(self, name: str) -> None:
        await self.place.run_timer(self.repository, TIMER, name)

    def _pulls(self) -> Iterator[PullRequest]:
        return (pull for pull in self.repository.pulls if pull.user.login == BOT)

    def _reviewers(self) -> list[str]:
        return [user.login for pull in self._pulls() for user in pull.requested_reviewers]

    def _has(self, text: str) -> bool:
        files = (self.repository.git.commits[pull.head_sha].files for pull in self._pulls())
        return any([listed[path] for path in FILES] == [text] * len(FILES) for listed in files)

    def seen(self) -> dict[str, Any]:
        """Return the pull requests with their changes, and how often the bot did each thing."""
        pulls = [
            (
                pull.state,
                plain(pull.body or "", self.repository),
                [(change.path, change.additions, change.deletions) for change in pull.files],
                [user.login for user in pull.requested_reviewers],
            )
            for pull in self._pulls()
        ]
        return {"pulls": pulls, "action_counts": dict(self.action_counts)}


async def undisturbed(folder: Path) -> tuple[list[Point], dict[str, Any]]:
    """Return the requests of the undisturbed conversation, and what people see in the end."""
    async with open_place(folder, f"sqlite:///{folder}/undisturbed.db") as place:
        side_by_side = SideBySide(place, {SlowSet.__name__: SlowSet})
        await place.start()
        side_by_side.begin()
        await side_by_side.end()
        (conversation,) = side_by_side.conversations.values()
        return points_of(place, conversation), conversation.seen()


async def test_a_kill_around_any_write_of_a_proposal_loses_and_repeats_nothing(tmp_path: Path, sqlite_url: str) -> None:
    points, seen = await undisturbed(tmp_path)
    ((state, _, changes, reviewers),) = seen["pulls"]
    assert (state, [path for path, *_ in changes], reviewers) == ("closed", list(FILES), ["triager"])
    # The statuses of the pushed commits belong to other deliveries.
    writes = [point for point in points if point.writes and not point.route.endswith("/statuses/{sha}")]
    assert len(writes) == 5 + 3 + 2, "tree, commit, branch, pull request, review; the first three again; both closed"
    around = [point.at(side) for point in writes for side in ("before", "after")]
    reads = spread([point for point in points if not point.writes], 8)
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, packed([*around, *reads], points))
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences({SlowSet: seen}) == {}
