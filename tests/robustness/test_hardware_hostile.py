"""Labs that send what no honest lab would: nobody else is harmed, and the lab can read why it was refused."""

from __future__ import annotations

import gzip
import json
import resource
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.github.check_runs import TITLE_LIMIT
from bot.results.service import RESULTS
from bot.results.store.lists.run_lists import list_runs
from handlers.results.watch import WATCH
from tests.bucket import World
from tests.conversations.lab import LabTown, junit, lab_town
from tests.gfm import rendered

GOOD = {"ops.xml": junit(test_add="passed")}
TEXT_LIMIT = 65_535
"""Characters of a check run's summary or text."""
NASTY = "@octocat #1 <script>x</script> https://example.org | `` ![](x) \x1b[31m \u202eevil\u2066 \x00 \ud800"
ENVIRONMENT = {f"key {n}": NASTY.replace("\ud800", "") * 60 for n in range(100)}


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as place:
        yield place


def refusals(place: LabTown) -> list[tuple[str, str]]:
    """Return the state and reason of every run."""
    return [
        (run.state.value, run.reason)
        for run in place.town.bot.services.part(RESULTS).store.read(list_runs, "octocat/compiler")
    ]


async def test_a_manifest_of_another_commit_is_refused(place: LabTown) -> None:
    sha, other_sha = place.nightly_run(), place.nightly_run()
    folder = place.upload(sha, GOOD, manifest=False)
    document = {"schema": 1, "sha": other_sha, "suite": "operators", "files": []}
    place.bucket.put(f"{folder}manifest.json", json.dumps(document).encode())
    await place.settle()
    assert place.town.repo.check_runs(sha) == place.town.repo.check_runs(other_sha) == []
    ((state, reason),) = refusals(place)
    assert state == "refused"
    assert "upload to the folder of the commit" in reason


async def test_results_for_a_fork_commit_count_only_at_the_head_of_the_pull_request_in_the_manifest(
    place: LabTown,
) -> None:
    fork = place.town.repo.fork("stranger")
    fork_sha = fork.push("main", {"evil.txt": "x"}, by="stranger").sha
    pull = place.town.repo.open_pull_request("stranger", "Mine", fork=True)
    place.upload(fork_sha, GOOD)
    place.upload(fork_sha, GOOD, pull_request=pull.number)
    place.upload(pull.head_sha, GOOD)
    await place.settle()
    assert [state for state, _ in refusals(place)] == ["refused"] * 3
    place.upload(pull.head_sha, GOOD, pull_request=pull.number)
    await place.settle()
    assert place.check(pull.head_sha).conclusion == "success"


async def test_one_shard_of_ten_thousand_gets_a_short_summary(place: LabTown) -> None:
    sha = place.nightly_run()
    place.upload(sha, GOOD, shard={"index": 7, "total": 10_000})
    await place.settle()
    check = place.check(sha)
    assert str(check.title).startswith("Incomplete: 1 of 10,000 shards of operators")
    assert len(str(check.summary)) < 4_000


async def test_what_a_lab_says_about_itself_is_shown_as_plain_text(database_url: str, aws_world: World) -> None:
    """Control characters that no database accepts, characters that reverse the text, Markdown and HTML."""
    test = {"name": f"test_{NASTY}", "status": "failed", "duration": 1, "message": NASTY, "trace": NASTY * 2000}
    report = {"results": {"tool": {"name": NASTY}, "summary": {}, "tests": [test]}}
    async with lab_town(database_url, aws_world) as place:
        sha = place.nightly_run()
        claims: dict[str, Any] = {"environment": ENVIRONMENT, "log_url": f"https://example.org/{NASTY[:-1]}"}
        place.upload(sha, {"a.json": json.dumps(report).encode()}, suite="@octocat", exit_status=10**30, **claims)
        place.upload(sha, {"a.json": json.dumps(report).encode()}, exit_status=10**30, **claims)
        await place.settle()
        assert await place.town.failures() == []
        assert sorted(state for state, _ in refusals(place)) == ["refused", "stored"]
        check = place.check(sha)
        assert len(str(check.title)) <= TITLE_LIMIT
        for text in (str(check.summary), str(check.text)):
            assert len(text) <= TEXT_LIMIT
            assert not set("\x00\x1b\u202e\u2066\ud800") & set(text)
            html = rendered(text)
            assert "<script" not in html
            assert "<img" not in html


BOMBS: Mapping[str, Callable[[], bytes]] = {
    "bytes.xml.gz": lambda: gzip.compress(b"<testsuites>" + b" " * (300 << 20)),
    "depth.xml": lambda: b"<a>" * 3_000_000,
    "names.xml.gz": lambda: gzip.compress(b"<testsuite>" + b"".join(b"<a%d/>" % n for n in range(500_000))),
    "entities.xml": lambda: b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><testsuite name="&a;"/>',
    "nested.json": lambda: b"[" * 5_000_000,
    "string.json": lambda: b'{"results": {"tests": [{"name": "' + b"x" * (30 << 20),
    "rows.csv": lambda: b"Name,Status\n" + b"x" * (30 << 20),
}


@pytest.mark.exhaustive("names.xml.gz", "string.json")
@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_reported_as_the_labs_fault_while_the_bot_still_answers(place: LabTown, name: str) -> None:
    sha = place.nightly_run()
    place.upload(sha, {name: BOMBS[name]()})
    place.upload(sha, GOOD, suite="others")
    peak_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    place.time.ahead += 60
    await place.town.bot.services.part(WATCH).tick()

    async def answered() -> int:
        times = 0
        async with aiohttp.ClientSession(place.town.url) as session:
            while not refusals(place) or {"waiting"} & {state for state, _ in refusals(place)}:
                async with session.get("/healthz", timeout=aiohttp.ClientTimeout(10)) as answer:
                    times += answer.status == 200
        return times

    assert await answered() >= 1
    await place.town.quiet()
    await place.settle()
    check = place.check(sha)
    assert check.conclusion == "neutral"
    assert name in str(check.summary), check.summary
    assert await place.town.failures() == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_memory < 100 << 10
