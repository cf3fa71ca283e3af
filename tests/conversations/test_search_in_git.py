"""A search over 300 commits of a real git repository: real agents run a real pytest on two targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.events import Repository
from bot.engine.internal import announce
from bot.results.culprit.search import CERTAIN, SearchOutcome
from handlers.device_tests.commit_jobs import commit_job
from handlers.device_tests.model import LEASE_SECONDS
from handlers.device_tests.sweep import SWEEP
from handlers.searches.effects import SEARCH_EVENT, SearchEvent
from handlers.searches.records import CULPRIT_SEARCH, CulpritSearch, SearchRequest, SearchRunState
from sandbox.model.home import HEADS
from tests.bucket import World
from tests.conversations.device_lab import CONFIG, LAB, DeviceLab, device_lab
from tests.conversations.search_repository import PYTEST, TEST, BrokenRepository, broken_repository
from tests.lab.agent_rack import Rack, ended
from tests.waiting import until

COMMITS, CULPRIT = 300, 201
"""The culprit is not at an eighth of the range, where the commit that cannot be imported lies."""
FLAKY = 0.1
PHONE, BOARD = "hexagon-v73", "adreno"
SETTINGS = "{{tier: 2, searches: {{budget: 60/day}}}}"
HANGS = f"""
if [ "$NIGHTJAR_TARGET" = {PHONE} ] && [ ! -e "$HOME/hangs" ] && [ "$(wc -c < "$HOME/runs-{PHONE}")" -gt 2 ]; then
touch "$HOME/hangs"
sleep 600
fi
"""
"""The third run on the phone does not end."""
BREAKS = """
if [ ! -e "$HOME/not-built" ] && [ "$NIGHTJAR_SHA" != "$GOOD" ] && [ "$NIGHTJAR_SHA" != "$BAD" ]; then
echo "$NIGHTJAR_SHA" > "$HOME/not-built"
fi
if [ -e "$HOME/not-built" ] && [ "$(cat "$HOME/not-built")" = "$NIGHTJAR_SHA" ]; then
echo "def add(a, b:" > ops.py
fi
"""
"""The first commit inside the range that any device gets cannot be imported, on no device."""


def in_sandbox(lab: DeviceLab, repository: BrokenRepository) -> None:
    """Let the sandbox have the commits of a repository, as its branch `nightly`."""
    repo, parents = lab.town.repo, list[str]()
    person, moment = repo.github.user("octocat"), repo.github.clock.now()
    for number, sha in enumerate(repository.shas):
        made = repo.git.commit(parents, {}, f"Change {number}", person, moment)
        repo.git.commits[sha] = replace(repo.git.commits.pop(made.sha), sha=sha)
        parents = [sha]
    repo.move(HEADS + "nightly", repository.shas[-1], "octocat")


@pytest.mark.exhaustive
async def test_a_search_over_300_commits_names_the_planted_one(tmp_path: Path, aws_world: World) -> None:
    repository = broken_repository(tmp_path / "mirror", COMMITS, CULPRIT, rate=FLAKY)
    config = CONFIG.replace("bucket: {bucket}", "prefix: results/").replace("{{tier: 2, timeout: 2h}}", SETTINGS)
    config = config.replace("adreno: nightly", f"adreno: {SETTINGS}")
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, config=config) as lab:
        in_sandbox(lab, repository)
        services, repo = lab.town.bot.services, lab.town.repo
        targets = (f"{LAB}/{BOARD}", f"{LAB}/{PHONE}")
        request = SearchRequest("operators", (TEST,), targets, repository.shas[0], repository.shas[-1])
        event = SearchEvent.start(request, lab.time())
        await announce(services.announce, SEARCH_EVENT, Repository(repo.id, repo.full_name, None), event)

        async def search() -> CulpritSearch | None:
            return await services.records.get(CULPRIT_SEARCH.of(repo.id, request.id))

        rack = Rack(lab, tmp_path, request.bad, aws_world)
        options = ("--can", "tests", "--can", "repeat")
        script = f"GOOD={request.good} BAD={request.bad}\n{BREAKS}{PYTEST}"
        variables = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NIGHTJAR_PASS_VARIABLES": "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
        phone, board = [
            await rack.agent(HANGS + script, *options, target=target, folder=target, variables=variables)
            for target in (PHONE, BOARD)
        ]
        await until((tmp_path / "hangs").exists)
        phone.kill()
        await ended(phone)
        lab.time.ahead += LEASE_SECONDS + 1
        await services.part(SWEEP).tick()
        phone = await rack.agent(script, *options, target=PHONE, folder=PHONE, variables=variables)

        async def has_answer() -> bool:
            stored = await search()
            return stored is not None and stored.answer is not None

        await until(has_answer)
        for agent in (phone, board):
            agent.terminate()
            await ended(agent)
        result = await search()
        assert result is not None
        assert result.answer is not None
        assert SearchOutcome(result.answer.outcome) is SearchOutcome.CULPRIT
        assert (result.answer.first, result.answer.last) == (CULPRIT, CULPRIT)
        assert result.answer.probability >= CERTAIN
        silent = [result.sha_of(run.commit) for run in result.runs if run.state is SearchRunState.NO_RESULTS]
        assert silent == [(tmp_path / "not-built").read_text().strip()], "it is not asked about again"
        assert {run.target for run in result.runs} == set(targets)
        attempts = []
        for run in result.runs:
            job = await commit_job(lab.store, repo.id, LAB, result.purpose(run.number))
            assert job is not None
            attempts.append(job.attempt)
        assert 2 in attempts, "the job of the agent that was killed ran again"
