"""The gauges of all features: the database is asked as often for one repository as for many."""

from __future__ import annotations

import json

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from bot.app.features import ALL_FEATURES
from bot.app.load import parse_config
from bot.app.services import open_services
from bot.config.environment import Settings
from bot.engine.service import Engine
from bot.github.client import GitHub
from bot.github.pull_heads import REPOSITORY_ID, RepositoryId
from bot.github.repositories.in_force import REPOSITORY_FILE, StoredFile
from bot.timers.timers import TIMER_RUN, TimerRun
from handlers.results.records import LISTED, Listed
from handlers.tracking_branches.records import TRACKING
from sandbox import GitHubSandbox
from sandbox.bucket import ENVIRONMENT
from tests.counted import counted
from tests.processes import lent_pool
from tests.results.plans import plans_seen

LABS = {"bucket": "device-results", "prefix": "results/", "labs": {"example-lab": {"targets": ["hexagon", "adreno"]}}}
KEYS = {"nightly": {}, "last_good": {"require": ["*/branch"]}, "repository_file": True, "results": LABS}
STATE = {
    "branch": "last-successful", "sha": "a" * 40, "previous_sha": None, "moved_at": None, "commits": 1,
    "scanned_at": "2026-03-06T20:00:00Z", "why": "", "trouble": "", "why_not_newer": [],
    "lag": {"commits": 2, "since": "2026-03-06T19:00:00Z"}, "require": ["*/branch"],
}  # fmt: skip


async def nobody(repository: str) -> GitHub:
    raise AssertionError(f"GitHub was asked for {repository}")


async def statements_of_metrics(url: str, count: int) -> int:
    """Return how many statements the gauges of this many repositories run, on both stores."""
    names = [f"octocat/r{number}" for number in range(count)]
    config = parse_config(json.dumps({"repositories": dict.fromkeys(names, KEYS)}).encode(), "app.yaml")
    key = GitHubSandbox().create_app("nightjar", events=()).private_key
    environment = {"GITHUB_APP_ID": "1", "GITHUB_PRIVATE_KEY": key, "GITHUB_WEBHOOK_SECRET": "sesame-sesame-01"}
    settings = Settings.from_environment({**environment, "DATABASE_URL": url})
    async with (
        aiohttp.ClientSession() as session,
        lent_pool() as pool,
        Engine(url) as engine,
        open_services(config, settings, engine, session, nobody, pool=pool) as services,
    ):
        for number, name in enumerate(names, 1):
            records = {
                REPOSITORY_ID.of(name): RepositoryId(number),
                TIMER_RUN.of(name, "nightly"): TimerRun(f"timer:{number}:nightly:1", 1.0),
                TRACKING.of("last-good", number): STATE,
                REPOSITORY_FILE.of(name): StoredFile(faults=number),
                LISTED.of(name): Listed(at=1.0),
            }
            await engine.records.put_all(records)
        registry = CollectorRegistry()
        gauges = [feature.metrics(services, registry) for feature in ALL_FEATURES if feature.metrics is not None]
        with counted(engine.database.connector) as work, plans_seen() as plans:
            for gauge in gauges:
                await gauge.refresh()
        labels = {"repository": names[-1]}
        assert registry.get_sample_value("nightjar_repository_file_faults", labels) == count
        assert registry.get_sample_value("nightjar_last_good_lag_commits", labels) == 2
        assert registry.get_sample_value("nightjar_results_waiting_runs", labels) == 0
        outcome = {**labels, "timer": "nightly", "outcome": "forgotten"}
        assert registry.get_sample_value("nightjar_timer_last_outcome", outcome) == 1
        assert plans.scans == []
        return work.statements + plans.statements


async def test_the_gauges_of_many_repositories_take_as_many_statements_as_those_of_one(
    url_with_tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    few = await statements_of_metrics(url_with_tables, 1)
    assert await statements_of_metrics(url_with_tables, 20) == few
