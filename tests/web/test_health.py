"""The answers to operators' programs; `tests/app/test_serve.py` shows that a running server is ready."""

from __future__ import annotations

import json
import math

from prometheus_client.parser import text_string_to_metric_families

from bot.core.health import HealthCheck, health_of
from tests.web.conftest import Site


async def test_a_live_process_answers_healthz(site: Site) -> None:
    status, headers, body = await site.get("/healthz")
    assert (status, json.loads(body)["status"]) == (200, "ok")
    assert headers["Cache-Control"] == "no-store"


async def test_without_a_worker_it_is_not_ready_and_says_why(site: Site) -> None:
    status, _, body = await site.get("/readyz")
    assert status == 503
    assert json.loads(body) == {"status": "not ready", "reason": "the worker has not started", "warnings": {}}


async def test_a_warning_is_shown_next_to_the_reason_and_in_a_metric(site: Site) -> None:
    failing = ("nightjar_check_failing", frozenset({("check", "bucket")}))
    assert (await measured(site))[failing] == 0
    site.warnings.append("a bucket is missing")
    _, _, body = await site.get("/readyz")
    assert json.loads(body)["warnings"] == {"bucket": "a bucket is missing"}
    assert json.loads(body)["reason"] == "the worker has not started"
    assert (await measured(site))[failing] == 1


def test_only_a_fatal_check_makes_a_process_not_ready() -> None:
    warns = HealthCheck("bucket", lambda: "away", fatal=False)
    assert health_of([warns, HealthCheck("engine", lambda: None)]).reason == ""
    fails = [HealthCheck("engine", lambda: "no worker"), HealthCheck("app", lambda: "wrong key")]
    assert health_of([warns, *fails]).reason == "no worker; wrong key"


async def measured(site: Site) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the contents of /metrics, read by Prometheus' own parser."""
    status, headers, body = await site.get("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(body.decode()))
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


async def test_waiting_jobs_are_counted_by_task_with_the_age_of_the_oldest(site: Site) -> None:
    empty = await measured(site)
    assert empty["nightjar_oldest_waiting_seconds", frozenset()] == 0
    for guid in ("guid-1", "guid-2"):
        await site.post(guid=guid)
    full = await measured(site)
    assert full["nightjar_waiting_jobs", frozenset({("task", "deliver")})] == 2
    assert 0 < full["nightjar_oldest_waiting_seconds", frozenset()] < 60


async def test_all_metrics_for_operators_exist(site: Site) -> None:
    site.metrics.delivery("issue_comment", "routed", 0.01)
    site.metrics.handler("rerun", "planned", 0.2)
    site.metrics.effect("upsert-comment", "applied", 0.3)
    site.metrics.request("GET", "/repos/{owner}/{repo}/pulls/{number}", 200, 0.1)
    site.metrics.request("BREW", "/app", 0, 0.1)
    site.metrics.quota("123", "core", 4_999, 5_000, 1_800_000_000)
    site.metrics.redelivered(requested=3, recovered=2)
    values = await measured(site)
    route = ("route", "/repos/{owner}/{repo}/pulls/{number}")
    for name, labels, value in [
        ("nightjar_build_info", {("version", "1.2.3")}, 1),
        ("nightjar_deliveries_total", {("event", "issue_comment"), ("outcome", "routed")}, 1),
        ("nightjar_handler_runs_total", {("handler", "rerun"), ("outcome", "planned")}, 1),
        ("nightjar_handler_seconds_count", {("handler", "rerun")}, 1),
        ("nightjar_effects_total", {("kind", "upsert-comment"), ("outcome", "applied")}, 1),
        ("nightjar_effect_seconds_sum", {("kind", "upsert-comment")}, 0.3),
        ("nightjar_github_requests_total", {("method", "GET"), route, ("status", "200")}, 1),
        ("nightjar_github_requests_total", {("method", "other"), ("route", "/app"), ("status", "none")}, 1),
        ("nightjar_github_request_seconds_sum", {("method", "GET"), route}, 0.1),
        ("nightjar_github_quota_remaining", {("installation", "123"), ("resource", "core")}, 4_999),
        ("nightjar_missed_deliveries_asked_total", set(), 3),
        ("nightjar_missed_deliveries_recovered_total", set(), 2),
        ("nightjar_missed_deliveries", set(), 1),
    ]:
        assert math.isclose(values[name, frozenset(labels)], value), name
    assert values["process_resident_memory_bytes", frozenset()] > 0


async def test_strangers_cannot_make_the_metrics_grow(site: Site) -> None:
    count = len(await measured(site))
    for number in range(20):
        site.metrics.delivery(f"event_{'x' * number}", "ignored", 0.1)
        await site.get(f"/no-such-page-{number}")
    assert len(await measured(site)) < count + 20
