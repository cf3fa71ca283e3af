"""Names used by outside programs: routes and metrics.

A feature that forgets to register its own changes this list.
"""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp

from tests.conversations.town import town

ROUTES = {
    "GET /",
    "GET /api/v1/repos",
    "GET /api/v1/openapi.json",
    "GET /api/v1/repos/{owner}/{repo}/commits/{sha}/decision",
    "GET /api/v1/repos/{owner}/{repo}/grid",
    "GET /api/v1/repos/{owner}/{repo}/compare",
    "GET /api/v1/repos/{owner}/{repo}/commits/{sha}",
    "GET /r/{owner}/{repo}/commits/{sha}",
    "GET /api/v1/repos/{owner}/{repo}/flaky",
    "GET /api/v1/repos/{owner}/{repo}/skipped",
    "GET /api/v1/repos/{owner}/{repo}/slow",
    "GET /api/v1/repos/{owner}/{repo}/last-good",
    "GET /api/v1/repos/{owner}/{repo}/nightly",
    "GET /api/v1/repos/{owner}/{repo}/pulls/{n}/decision",
    "GET /api/v1/repos/{owner}/{repo}/results/failures",
    "GET /api/v1/repos/{owner}/{repo}/results/runs",
    "GET /api/v1/repos/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}",
    "GET /api/v1/repos/{owner}/{repo}/tests",
    "GET /api/v1/help",
    "GET /api/v1/repos/{owner}/{repo}/timers",
    "GET /healthz",
    "GET /help",
    "GET /metrics",
    "GET /r/{owner}/{repo}/compare",
    "GET /api/v1/repos/{owner}/{repo}/labs/{lab}",
    "GET /r/{owner}/{repo}/labs/{lab}",
    "GET /r/{owner}/{repo}/labs",
    "GET /api/v1/repos/{owner}/{repo}/labs",
    "GET /r/{owner}/{repo}/grid.png",
    "GET /favicon.ico",
    "GET /api",
    "GET /search",
    "GET /api/v1/search",
    "GET /r/{owner}/{repo}/search",
    "GET /api/v1/repos/{owner}/{repo}/search",
    "GET /r/{owner}/{repo}/badge/{lab}/{target}.svg",
    "GET /r/{owner}/{repo}/mute",
    "POST /r/{owner}/{repo}/mute",
    "GET /api/v1/repos/{owner}/{repo}/mute",
    "GET /r/{owner}/{repo}/flaky",
    "GET /r/{owner}/{repo}/skipped",
    "GET /r/{owner}/{repo}/slow",
    "GET /r/{owner}/{repo}/nightly",
    "GET /r/{owner}/{repo}/regressions.atom",
    "GET /r/{owner}/{repo}",
    "GET /r/{owner}/{repo}/tests",
    "GET /r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}",
    "GET /r/{owner}/{repo}/pulls",
    "GET /api/v1/repos/{owner}/{repo}/pulls",
    "GET /r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}",
    "GET /r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}/raw",
    "GET /api/v1/repos/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}",
    "GET /api/v1/repos/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}/raw",
    "GET /r/{owner}/{repo}/pulls/{n}",
    "GET /api/v1/repos/{owner}/{repo}/pulls/{n}",
    "GET /readyz",
    "GET /login",
    "GET /login/callback",
    "POST /api/v1/labs/{lab}/admission",
    "POST /api/v1/labs/{lab}/claims",
    "POST /api/v1/labs/{lab}/jobs/{job}/failed",
    "POST /api/v1/labs/{lab}/jobs/{job}/heartbeat",
    "POST /api/v1/labs/{lab}/runs",
    "POST /api/v1/labs/{lab}/runs/{upload}/manifest",
    "PUT /api/v1/labs/{lab}/runs/{upload}/files/{name}",
    "POST /logout",
    "GET /operate",
    "GET /operate/deliveries/{guid}",
    "POST /operate/deliveries/{guid}/replay",
    "POST /operate/deliveries/{guid}/dry-run",
    "GET /operate/state",
    "GET /operate/log",
    "GET /api/v1/operate",
    "GET /api/v1/operate/deliveries/{guid}",
    "GET /api/v1/operate/state",
    "GET /api/v1/operate/log",
    "GET /static/{name}",
    "POST /webhook",
}
METRICS = {
    "nightjar_build_info",
    "nightjar_check_failing",
    "nightjar_deliveries_total",
    "nightjar_delivery_seconds",
    "nightjar_device_jobs",
    "nightjar_device_jobs_claim_seconds",
    "nightjar_device_jobs_handed_out_again",
    "nightjar_device_jobs_oldest_queued_seconds",
    "nightjar_device_jobs_unanswered",
    "nightjar_effect_seconds",
    "nightjar_effects_total",
    "nightjar_github_quota_remaining",
    "nightjar_github_request_seconds",
    "nightjar_github_requests_total",
    "nightjar_handler_runs_total",
    "nightjar_handler_seconds",
    "nightjar_lab_calls_total",
    "nightjar_last_good_lag_commits",
    "nightjar_last_good_lag_seconds",
    "nightjar_last_good_sole_blocker",
    "nightjar_missed_deliveries",
    "nightjar_missed_deliveries_asked_total",
    "nightjar_missed_deliveries_recovered_total",
    "nightjar_oldest_waiting_seconds",
    "nightjar_repository_file_faults",
    "nightjar_results_listed_age_seconds",
    "nightjar_results_newest_run_age_seconds",
    "nightjar_results_queue_heard_age_seconds",
    "nightjar_results_waiting_runs",
    "nightjar_timer_last_outcome",
    "nightjar_timer_last_run_age_seconds",
    "nightjar_timer_next_run_seconds",
    "nightjar_waiting_jobs",
    "nightjar_webhook_answers_total",
}


async def test_the_server_has_exactly_these_routes_and_metrics(tmp_path: Path) -> None:
    async with (
        town(f"sqlite:///{tmp_path}/nightjar.db") as here,
        aiohttp.ClientSession(here.url) as session,
        session.get("/api/v1/openapi.json") as document,
        session.get("/metrics") as metrics,
    ):
        paths = json.loads(await document.text())["paths"]
        lines = (await metrics.text()).splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE nightjar_")}
    assert {f"{method.upper()} {path}" for path, item in paths.items() for method in item} == ROUTES
    assert {name for name in names if not name.endswith("_created")} == METRICS
