"""`@ci benchmark`: the real bot, a real agent, a real git repository, and pytest as the lab's command."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.github.text import sticky
from handlers.device_tests.model import LEASE_SECONDS, DeviceJob, DeviceJobState, JobEnd
from handlers.device_tests.sweep import SWEEP
from sandbox import PullRequest
from tests.bucket import World
from tests.conversations.device_lab import LAB, TARGET
from tests.lab.agent_rack import Rack, ended, git, lab_rack
from tests.waiting import until

# What it measures has noise that the number of the run decides, so that no clock matters.
TEST = """
import os, random
import kernel

def test_conv(measure):
    noise = random.Random(int(os.environ["NIGHTJAR_ROUND"])).gauss(0, 0.002)
    measure("latency", kernel.CONV * (1 + noise), unit="ms", better="lower")
    measure("delegated_nodes", 12, unit="nodes", better="higher")

def test_add(measure):
    measure("latency", 1.5, unit="ms", better="lower")

def test_broken():
    assert kernel.CONV < 4.1
"""
# Its intervals are narrow enough after eight blocks.
NOISY = """
value=$(( 1000 + NIGHTJAR_ROUND * NIGHTJAR_ROUND * 7919 % 23 * 5 ))
property="<property name='measurement.latency' value='$value ms'/>"
echo "<testsuite><testcase classname='a' name='b'><properties>$property</properties></testcase></testsuite>" \\
  > "$NIGHTJAR_RESULTS/a.xml"
"""
PYTEST = (
    f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p nightjar_lab.pytest -p no:cacheprovider "
    '--nightjar-report "$NIGHTJAR_RESULTS/report.jsonl" test_kernel.py'
)
# One run of the same command is enough to see what an agent gives to it.
SHELL = """
test "$(cat "$NIGHTJAR_BASE/kernel.py")" = "CONV = 4.0" && cmp "$NIGHTJAR_BASE/kernel.py" "$NIGHTJAR_HEAD/kernel.py" ||
  exit 9
echo "$NIGHTJAR_SIDE $NIGHTJAR_ROUND $NIGHTJAR_SHA $(cat "$NIGHTJAR_TESTS")" >> {log}
value="1.$(( (NIGHTJAR_ROUND * 7919) % 10 ))"
property="<property name='measurement.latency' value='100$value ms'/>"
echo "<testsuite><testcase classname='a' name='b'><properties>$property</properties></testcase></testsuite>" \\
  > "$NIGHTJAR_RESULTS/a.xml"
"""


def pull_with(rack: Rack, conv: float) -> tuple[PullRequest, str]:
    """Open a pull request whose head and base are commits of the lab's mirror; return it with its base."""
    mirror, repo = rack.folder / "mirror", rack.lab.town.repo
    (mirror / "test_kernel.py").write_text(TEST)
    shas = []
    for level in (4.0, conv):
        (mirror / "kernel.py").write_text(f"CONV = {level}\n")
        git(mirror, "add", ".")
        git(mirror, "commit", "--quiet", "--allow-empty", "-m", f"{level}")
        shas.append(git(mirror, "rev-parse", "HEAD"))
    base, head = shas
    commits, tip = repo.git.commits, repo.branch("main")
    commits[base] = replace(commits[tip], sha=base, parents=(tip,))
    commits[head] = replace(commits[tip], sha=head, parents=(base,))
    repo.move("refs/heads/main", base, "octocat")
    repo.move(f"refs/heads/conv-{conv}", head, "hubot")
    return repo.open_pull_request("hubot", "Change the kernel", branch=f"conv-{conv}"), base


def section(rack: Rack, pull: PullRequest) -> str:
    """Return the section of the bot's comment."""
    bodies = rack.lab.town.answers(pull)
    return next((text for body in bodies if (text := sticky.sections_of(body).get("benchmarks"))), "")


async def answer(rack: Rack, pull: PullRequest, text: str, author: str = "hubot") -> str:
    """Comment, and return the bot's answer."""
    known = len(rack.lab.town.answers(pull))
    pull.comment(author, text)
    await rack.lab.town.quiet()
    return "\n".join(rack.lab.town.answers(pull)[known:])


async def page_of(rack: Rack, pull: PullRequest) -> str:
    """Return the HTML of the page of a pull request."""
    async with rack.lab.client.get(f"{rack.lab.town.url}/r/octocat/compiler/pulls/{pull.number}") as response:
        return await response.text()


async def json_of(rack: Rack, pull: PullRequest) -> Any:
    """Return its JSON twin."""
    address = f"{rack.lab.town.url}/api/v1/repos/octocat/compiler/pulls/{pull.number}"
    async with rack.lab.client.get(address) as response:
        return await response.json()


async def job_of(rack: Rack, pull: PullRequest) -> DeviceJob:
    return (await rack.lab.store.of_pull(rack.lab.town.repo.id, pull.number))[-1]


async def test_a_planted_slowdown_is_a_row_of_the_table_and_equal_code_is_no_difference(
    tmp_path: Path, aws_world: World
) -> None:
    async with lab_rack(tmp_path, aws_world, has_bucket=False) as rack:
        town = rack.lab.town
        slower, base = pull_with(rack, 4.4)
        say = await answer(rack, slower, f"@ci benchmark on {TARGET}")
        assert f"`{LAB}/{TARGET}` will run `{slower.head_sha[:7]}` and its base `{base[:7]}` in turn." in say
        job = await job_of(rack, slower)
        assert (job.state, job.few_tests.base_sha, job.few_tests.precision) == (DeviceJobState.QUEUED, base, 0.02)
        assert job.few_tests.seconds == 20 * 60
        assert "is already requested" in await answer(rack, slower, f"@ci benchmark on {TARGET}")
        other = await answer(rack, slower, f"@ci benchmark a::b on {TARGET}")
        assert "with other tests or options has not ended" in other
        # A test of the same head is another job.
        await answer(rack, slower, f"@ci test on {TARGET}")
        await answer(rack, slower, "@ci cancel tests")
        assert section(rack, slower) == ""
        await answer(rack, slower, f"@ci benchmark on {TARGET}")
        status, output = await ended(await rack.agent(PYTEST, "--can", "sides", once=True))
        assert status == 0, output
        await town.quiet()
        shown = section(rack, slower)
        assert f"**Benchmark of `{slower.head_sha[:7]}` against its base `{base[:7]}` on `{LAB}/{TARGET}`**" in shown
        assert "**: 1 measurement changed; no difference larger than 2 % (95 %) in 2 measurements." in shown
        assert "`test_kernel.py::test_conv` | `latency` | `4 ms` | `4.4 ms` | +10." in shown
        assert ", worse |" in shown
        assert "<summary>no difference larger than 2 % (95 %) in 2 measurements</summary>" in shown
        assert "`test_kernel.py::test_add` | `latency` | `1.5 ms` | `1.5 ms` | the same in all runs |" in shown
        assert "Failed at the head: `test_kernel.py::test_broken`." in shown
        assert "runs of each commit" in shown
        # Its run is not a result of the head.
        assert [run.title for run in town.repo.check_runs(slower.head_sha)] == ["Cancelled"]

        page = await page_of(rack, slower)
        assert '<td data-label="Measurement">delegated_nodes</td>' in page
        (shown_benchmark,) = (await json_of(rack, slower))["benchmarks"]
        assert shown_benchmark["answer"] in page
        assert shown_benchmark["failed_at_head"] == ["test_kernel.py::test_broken"]
        row = shown_benchmark["measurements"][0]
        assert (row["test"], row["name"], row["verdict"]) == ("test_kernel.py::test_conv", "latency", "worse")
        assert row["low"] < 1.1 < row["high"]

        equal, base = pull_with(rack, 4.0)
        say = await answer(rack, equal, f"@ci benchmark a::b on {TARGET} to 5% within 1h")
        job = await job_of(rack, equal)
        assert (job.few_tests.tests, job.few_tests.precision, job.few_tests.seconds) == (("a::b",), 0.05, 3600)
        status, output = await ended(await rack.agent(SHELL.format(log=tmp_path / "log"), "--can", "sides", once=True))
        assert status == 0, output
        await town.quiet()
        assert "no difference larger than 5 % (95 %) in 1 measurement." in section(rack, equal)
        lines = (tmp_path / "log").read_text().splitlines()
        order = [f"{side} {number} {sha} a::b" for side, number, sha in (
            ("base", 0, base), ("head", 0, equal.head_sha), ("base", 1, base),
            ("head", 2, equal.head_sha), ("head", 3, equal.head_sha), ("base", 4, base),
        )]  # fmt: skip
        assert lines[:6] == order


async def test_the_page_shows_how_far_a_benchmark_is_and_a_killed_agent_loses_and_doubles_nothing(
    tmp_path: Path, aws_world: World
) -> None:
    async with lab_rack(tmp_path, aws_world, has_bucket=False) as rack:
        pull, _ = pull_with(rack, 4.4)
        await answer(rack, pull, f"@ci benchmark on {TARGET} to 4%")
        # So close to its end, the agent extends the lease three times a second, as it otherwise does in three minutes.
        rack.lab.time.ahead -= LEASE_SECONDS - 1
        waits = f'while [ "$NIGHTJAR_ROUND" -gt 20 ] && [ ! -e {tmp_path}/go ]; do sleep 0.1; done'
        agent = await rack.agent(f"{waits}; {NOISY}", "--can", "sides", once=True)

        async def shows(words: str) -> bool:
            return words in (await json_of(rack, pull))["device_tests"][0]["words"]

        await until(lambda: shows("block 5 of 60 at most: latency of a::b "))
        assert "enough is ±4 %" in await page_of(rack, pull)
        agent.send_signal(signal.SIGKILL)
        await agent.wait()
        (tmp_path / "go").touch()
        rack.lab.time.ahead += 2 * LEASE_SECONDS
        await rack.lab.store.expire()
        assert (await job_of(rack, pull)).state is DeviceJobState.QUEUED
        status, output = await ended(await rack.agent(NOISY, "--can", "sides", once=True))
        assert status == 0, output
        await rack.lab.town.quiet()
        job = await job_of(rack, pull)
        assert (job.state, job.attempt) == (DeviceJobState.DONE, 2)
        assert section(rack, pull).count("**Benchmark of") == 1
        (shown_benchmark,) = (await json_of(rack, pull))["benchmarks"]
        assert len(shown_benchmark["measurements"]) == 1


async def test_people_read_why_there_is_no_benchmark(tmp_path: Path, aws_world: World) -> None:
    async with lab_rack(tmp_path, aws_world, has_bucket=False) as rack:
        pull, _ = pull_with(rack, 4.4)
        for text, reply in (
            ("@ci benchmark test_conv", "Name one target after `on`, as in `@ci benchmark on hexagon-v73`."),
            ("@ci benchmark on hexagon-v37", "Did you mean `hexagon-v73`?"),
            ("@ci benchmark on adreno", "`other-lab/adreno` will run"),
            ("@ci benchmark on hexagon-v73 to 0.1%", "write a precision from 0.5 % to 50 %"),
            ("@ci benchmark on hexagon-v73 quickly", "write a precision from 0.5 % to 50 %"),
            ("@ci benchmark on hexagon-v73 within 3h", "may take 2 hours at most"),
        ):
            assert reply in await answer(rack, pull, text), text
        say = await answer(rack, pull, f"@ci benchmark on {TARGET}", "somebody")
        assert "Only the pull request's author and people with triage access can do this." in say
        await answer(rack, pull, f"@ci benchmark on {TARGET}")
        assert (await ended(await rack.agent(SHELL, once=True)))[0] == 0
        job = (await rack.lab.store.of_pull(rack.lab.town.repo.id, pull.number))[-1]
        assert (job.state, job.end) == (DeviceJobState.ENDED, JobEnd.UNABLE)
        await rack.lab.town.bot.services.part(SWEEP).tick()
        await rack.lab.town.quiet()
        assert "no result. The lab's command cannot run two commits in turn." in section(rack, pull)
