"""Runs of a few tests: what people ask for with `@ci reproduce`, and what the bot asks for itself.

The bot, the agent, git and pytest are real; GitHub is the sandbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from nightjar_formats.model import TargetKey

from bot.results.few_tests import FewTestsOutcome, job_of_run
from bot.results.service import RESULTS
from bot.results.state import RunState
from bot.results.store.commit import commit_state
from bot.results.store.history.timelines import suites_of_target
from bot.results.store.lists.run_lists import list_runs, newest_arrivals
from handlers.device_tests.model import DeviceJobState
from sandbox import PullRequest
from sandbox.demo.mirror import AUTHOR, Mirror, push_to_fork
from sandbox.model.home import HEADS
from tests.bucket import World
from tests.conversations.device_lab import CONFIG, LAB, TARGET, device_lab
from tests.lab.agent_rack import Rack, ended

TEST_FILE, DEVICE = "tests/test_ops.py", "device.sh"
TEST = f"{TEST_FILE}::test_add"
CASE = '<testcase classname="tests.test_ops" name="test_add" time="0.1">'
REPORT = f'<testsuites><testsuite name="pytest">{CASE}%s</testcase></testsuite></testsuites>'
PASSES = f"""
echo "$NIGHTJAR_SIDE $NIGHTJAR_REPEAT $(cat "$NIGHTJAR_TESTS")" >> "$HOME/turns"
cat > "$NIGHTJAR_RESULTS/t.xml" <<'END'
{REPORT % ""}
END
"""
FAILS = f"""{PASSES}
echo >> "$HOME/runs"
if [ $(($(wc -l < "$HOME/runs") % 3)) != 0 ]; then
cat > "$NIGHTJAR_RESULTS/t.xml" <<'END'
{REPORT % '<failure message="device lost">trace of @mona</failure>'}
END
fi
"""
"""Fails in two of three runs."""


@dataclass
class GitRack:
    """A lab's machine whose git mirror has the commits of the sandbox's `main` and of a pull request."""

    rack: Rack
    mirror: Mirror
    pull: PullRequest

    def push(self, text: str) -> str:
        """Push a version of the tests to the pull request; return the SHA."""
        repo = self.rack.lab.town.repo
        sha = push_to_fork(repo, self.mirror, "faster", {DEVICE: text}, "Faster")
        repo.fork(AUTHOR).move(HEADS + "faster", sha, AUTHOR)
        return sha

    async def says(self, text: str) -> list[str]:
        """Comment as a person with write access; return what the bot answers."""
        town = self.rack.lab.town
        earlier = len(town.answers(self.pull))
        self.pull.comment("hubot", text)
        await town.quiet()
        return town.answers(self.pull)[earlier:]

    async def works(self, *options: str) -> str:
        """Let an agent do one job; return the answers on the pull request."""
        status, output = await ended(await self.rack.agent(f"bash {DEVICE}", *options, once=True))
        assert status == 0, output
        await self.rack.lab.town.quiet()
        return self.rack.lab.town.answers(self.pull)[-1]


@asynccontextmanager
async def git_rack(folder: Path, bucket: World) -> AsyncIterator[GitRack]:
    """Start a bot with a lab, whose mirror has the repository."""
    config = CONFIG.replace("bucket: {bucket}", "prefix: results/")
    async with device_lab(f"sqlite:///{folder}/nightjar.db", bucket, config=config) as lab:
        repo, path = lab.town.repo, folder / "mirror"
        path.mkdir()
        mirror = Mirror(path)
        files = {**repo.git.commits[repo.branch("main")].files, TEST_FILE: "def test_add(): ...\n", DEVICE: PASSES}
        made = repo.git.commit(
            [repo.branch("main")], files, "One", repo.github.user("octocat"), repo.github.clock.now()
        )
        sha = mirror.commit(files, "One")
        repo.git.commits[sha] = replace(repo.git.commits.pop(made.sha), sha=sha)
        repo.move(HEADS + "main", sha, "octocat")
        push_to_fork(repo, mirror, "faster", {DEVICE: FAILS}, "Faster")
        pull = repo.open_pull_request(AUTHOR, "Faster", branch="faster", fork=True)
        await lab.town.quiet()
        yield GitRack(Rack(lab, folder, sha, bucket), mirror, pull)


async def test_a_failure_is_reproduced_at_the_head_and_its_base_and_after_a_push(
    tmp_path: Path, aws_world: World
) -> None:
    async with git_rack(tmp_path, aws_world) as here:
        lab, first_head = here.rack.lab, here.pull.head_sha
        (answer,) = await here.says(f"@ci reproduce {TEST}")
        assert (
            "Name a test and a target, as in `@ci reproduce tests/test_ops.py::test_add on hexagon-v73 x20`" in answer
        )
        (answer,) = await here.says(f"@ci reproduce {TEST} on hexagon-v73 x6")
        assert "I run `tests/test_ops.py::test_add` 6 times at" in answer
        answer = await here.works("--can", "tests", "--can", "sides")
        base = here.rack.sha
        assert answer.splitlines()[1:] == [
            f"`{TEST}` failed in 4 of 6 runs at `{first_head[:7]}` on `example-lab/hexagon-v73`. "
            "It fails more often than at the base (95 %).",
            "",
            "| commit | failed | failure rate | 95 % interval |",
            "| --- | --- | --- | --- |",
            f"| head `{first_head[:7]}` | 4 of 6 | 67% | 32% to 92% |",
            f"| base `{base[:7]}` | 0 of 6 | 0% | 0% to 35% |",
            "",
            "Failures at the head:",
            "1. 4 runs: `device lost`",
            "",
            "<details><summary>The text of failure 1</summary>",
            "",
            "```text",
            "trace of @mona",
            "```",
            "",
            "</details>",
            "",
            f"After a push, comment `@ci reproduce {TEST} on example-lab/hexagon-v73 x6` again: "
            "the answer then says whether it is fixed.",
        ]
        turns = (tmp_path / "turns").read_text().splitlines()
        in_turn = ["head", "base", "base", "head"] * 3
        assert turns == [f"{side} 1 {TEST}" for side in in_turn], "one run a turn, because the command cannot repeat"
        await nothing_is_known_of(here, first_head)

        new_head = here.push(PASSES)
        await lab.town.quiet()
        await here.says(f"@ci reproduce {TEST} on hexagon-v73 x6")
        # The push may be so recent that the person may have seen the earlier head.
        await here.says(f"@ci approve tests {new_head}")
        (tmp_path / "turns").unlink()
        answer = await here.works("--can", "tests", "--can", "sides", "--can", "repeat")
        fixed = f"**Fixed (95 %)**: it failed in 4 of 6 runs at `{first_head[:7]}`, and in none of 4 runs at this head."
        assert fixed in answer, "the command says that it repeats a test itself, and runs it once in each of 4 turns"
        turns = (tmp_path / "turns").read_text().splitlines()
        assert [line.split()[:2] for line in turns][:4] == [["head", "2"], ["base", "2"], ["base", "2"], ["head", "2"]]


async def nothing_is_known_of(here: GitRack, sha: str) -> None:
    """Check that no reader takes the run of a few tests for results of its commit."""
    lab = here.rack.lab
    results, target = lab.town.bot.services.part(RESULTS), TargetKey(lab.town.repo.full_name, LAB, TARGET)
    (run,) = await results.read(list_runs, target.repository)
    assert (run.state, run.claims, run.admission) == (RunState.FEW_TESTS, None, None)
    assert not (await results.read(commit_state, target, sha)).suites
    assert not (await results.read(suites_of_target, target))
    assert not (await results.read(newest_arrivals, target.repository))
    assert lab.town.repo.check_runs(sha, target.check_name) == []
    job = await lab.store.find(LAB, job_of_run(run.key.run_id))
    assert job.state is DeviceJobState.DONE
    assert await lab.store.durations(LAB, TARGET) == []
    assert FewTestsOutcome.load(job.outcome).of(TEST).failed == 4
