"""No page reads a whole table on either database: every page is requested, and each statement is explained."""

from __future__ import annotations

from pathlib import Path

from nightjar_formats.model import TargetKey

from bot.results.store.failures.failures import Failure, store_reports
from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import (
    FLAKY,
    HEXAGON,
    LOG,
    LOGGED,
    NIGHTLY_RUNS,
    REPOSITORY,
    SOFTMAX,
    bucket_of,
    fill,
    sha,
)
from tests.handlers.dashboard.site import dashboard_site
from tests.handlers.dashboard.stored_searches import OPEN
from tests.results.plans import plans_seen

HERE = f"/r/{REPOSITORY}"
LAB, TARGET = HEXAGON
NEWEST = sha(NIGHTLY_RUNS - 1)
ADDRESSES = {
    "/": [""],
    "/r/{owner}/{repo}": [
        "", f"?target={LAB}/{TARGET}", f"?target={LAB}/{TARGET}&suite=operators", "?status=new-failure&q=soft",
        "?since=2026-11-15",
    ],
    "/r/{owner}/{repo}/nightly": [""],
    "/r/{owner}/{repo}/compare": ["", f"?target={LAB}/{TARGET}&base={sha(3)[:8]}&head={NEWEST}", "?q=soft"],
    "/r/{owner}/{repo}/compare/targets": ["", f"?target={LAB}/{TARGET}&against=hubot-lab/rpi-5@rack:2&q=soft"],
    "/r/{owner}/{repo}/commits/{sha}": [""],
    "/r/{owner}/{repo}/fixes": [""],
    "/r/{owner}/{repo}/flaky": ["", "?q=rpc"],
    "/r/{owner}/{repo}/slow": ["", f"?target={LAB}/{TARGET}"],
    "/r/{owner}/{repo}/searches": ["", "?before=001795818946-3b0dc1e118ff"],
    "/r/{owner}/{repo}/searches/{id}": [""],
    "/r/{owner}/{repo}/skipped": ["", "?q=bfloat16"],
    "/r/{owner}/{repo}/measurements": ["", f"?target={LAB}/{TARGET}&q=soft&measurement=latency"],
    "/r/{owner}/{repo}/badge.svg": [f"?id={SOFTMAX}&measurement=latency"],
    "/r/{owner}/{repo}/measurements/map": ["", "?measurement=latency&q=soft", "?all_targets=true&page=2"],
    "/r/{owner}/{repo}/measurements/series": [f"?id={SOFTMAX}&measurement=latency"],
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}": [""],
    "/r/{owner}/{repo}/labs": [""],
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}": ["", f"?test={SOFTMAX}"],
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}/raw": [""],
    "/r/{owner}/{repo}/labs/{lab}": [""],
    "/r/{owner}/{repo}/grid.png": [""],
    "/search": ["", f"?q={NEWEST[:7]}", "?q=soft", "?q=42"],
    "/r/{owner}/{repo}/search": ["", "?q=soft"],
    "/r/{owner}/{repo}/pulls": ["", "?state=open&author=octocat"],
    "/r/{owner}/{repo}/pulls/{n}": [""],
    "/r/{owner}/{repo}/badge/{lab}/{target}.svg": [""],
    "/r/{owner}/{repo}/regressions.atom": [""],
    "/r/{owner}/{repo}/tests": [f"?id={SOFTMAX}", f"?id={FLAKY}&target={LAB}/{TARGET}"],
}  # fmt: skip
"""What each page is asked for."""
PARTS = {
    "owner": "octocat",
    "repo": "compiler",
    "lab": LAB,
    "target": TARGET,
    "sha": NEWEST,
    "run_id": "operators-run-1",
    "name": "log.txt",
    "n": "42",
    "id": OPEN.id,
}
MOST_STATEMENTS = 12
MORE_STATEMENTS = {
    "/": 17,
    "/r/{owner}/{repo}": 23,
    "/r/{owner}/{repo}/compare": 46,
    "/r/{owner}/{repo}/badge.svg": 22,
    "/r/{owner}/{repo}/flaky": 13,
    "/r/{owner}/{repo}/measurements": 17,
    "/r/{owner}/{repo}/measurements/map": 13,
    "/r/{owner}/{repo}/pulls/{n}": 62,
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}": 61,
    "/r/{owner}/{repo}/skipped": 13,
    "/r/{owner}/{repo}/tests": 28,
}

MOST_TRANSACTIONS = 3
"""One for the revision of the results, one for a target that app.yaml does not list, and one for all that is shown."""
MORE_TRANSACTIONS = {
    "/r/{owner}/{repo}/compare": 8,
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}": 16,
    "/r/{owner}/{repo}/pulls/{n}": 17,
}
"""Their suites are compared in other threads or processes, between transactions."""


def reported(store: ResultsStore) -> None:
    fill(store)
    failures = [Failure("operators", SOFTMAX, sha(10), sha(9))]
    store.write(store_reports, TargetKey(REPOSITORY, *HEXAGON), NEWEST, store.clock(), failures, {})


async def test_all_pages_have_an_address_here(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path, filled=lambda _: None) as site:
        _, document = await site.json("/api/v1/openapi.json")
    pages = {path for path in document["paths"] if path in ("/", "/search") or path.startswith("/r/")}
    assert pages == set(ADDRESSES)


async def test_no_page_reads_a_whole_table(tmp_path: Path, url_with_tables: str) -> None:
    bucket = bucket_of(tmp_path, {LOGGED: LOG})
    async with dashboard_site(tmp_path, database=url_with_tables, filled=reported, bucket=bucket) as site:
        for path, queries in ADDRESSES.items():
            for query in queries:
                with plans_seen() as plans:
                    status, _, text = await site.get(path.format(**PARTS) + query)
                assert status == 200, (path, query, text)
                assert plans.scans == [], (path, query)
                assert plans.repeated == [], (path, query)
                assert plans.transactions <= MORE_TRANSACTIONS.get(path, MOST_TRANSACTIONS), (path, query)
                assert plans.statements <= MORE_STATEMENTS.get(path, MOST_STATEMENTS), (path, query)
