"""Alert rules: valid, based on the bot's own metrics, each with what to do, and each fires when it should."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from bot.app import serve
from scripts.pages import headings
from tests.deploy.measured import bot_metrics, unknown_in
from tests.deploy.tools import ALERTS, promtool
from tests.running import ROOT

BOT = 'nightjar_build_info{job="nightjar",instance="a"}'
WEBHOOKS = 'nightjar_webhook_answers_total{job="nightjar",instance="a",status="202"}'
DEVICE = 'repository="octocat/compiler",lab="example-lab",target="adreno"'
HOUR, DAY = 60, 24 * 60

HEALTHY = {
    BOT: "1x600",
    WEBHOOKS: "0+1x600",
    'process_start_time_seconds{job="nightjar",instance="a"}': "1000x600",
    'nightjar_check_failing{check="engine"}': "0x600",
    'nightjar_check_failing{check="bucket"}': "0x600",
    "nightjar_oldest_waiting_seconds": "2x600",
    "nightjar_missed_deliveries": "0x600",
    'nightjar_deliveries_total{event="push",outcome="routed"}': "0+3x600",
    'nightjar_deliveries_total{event="push",outcome="failed"}': "2x600",
    'nightjar_github_requests_total{method="GET",route="/app",status="200"}': "0+9x600",
    'nightjar_github_requests_total{method="GET",route="/app",status="502"}': "0+1x600",
    'nightjar_github_quota_remaining{installation="1",resource="core"}': "4000x600",
    'nightjar_github_quota_remaining{installation="1",resource="search"}': "20x600",
    'nightjar_results_listed_age_seconds{repository="octocat/compiler"}': "600x600",
    'nightjar_results_queue_heard_age_seconds{queue="q"}': "20x600",
    'nightjar_results_newest_run_age_seconds{lab="example-lab",target="adreno"}': "9000x600",
    'nightjar_results_waiting_runs{repository="octocat/compiler"}': "0x600",
    f"nightjar_device_jobs_oldest_queued_seconds{{{DEVICE}}}": "9000x600",
    f'nightjar_device_jobs{{{DEVICE},state="leased"}}': "1x600",
    f'nightjar_device_jobs{{{DEVICE},state="queued"}}': "3x600",
    'nightjar_repository_file_faults{repository="octocat/compiler"}': "0x600",
    'nightjar_timer_last_outcome{repository="octocat/compiler",timer="nightly",outcome="done"}': "1x600",
    'nightjar_timer_last_run_age_seconds{repository="octocat/compiler",timer="nightly"}': "9000x600",
    'nightjar_last_good_lag_seconds{repository="octocat/compiler"}': "9000x600",
}
FIRES: dict[str, tuple[dict[str, str], int]] = {
    "NightjarDown": ({}, 10),
    "NightjarNotReady": ({'nightjar_check_failing{check="database file"}': "1x600"}, 10),
    "NightjarCheckFailing": ({'nightjar_check_failing{check="bucket"}': "1x600"}, 20),
    "NightjarRestarting": ({BOT: "1x600", 'process_start_time_seconds{job="nightjar",instance="a"}': "0+7x90"}, 60),
    "NightjarNoDeliveries": ({BOT: "1x600", WEBHOOKS: "5x600"}, 2 * DAY),
    "NightjarWrongSignatures": ({'nightjar_webhook_answers_total{status="401"}': "0+1x600"}, 60),
    "NightjarBacklog": ({"nightjar_oldest_waiting_seconds": "301x600"}, 10),
    "NightjarMissedDeliveries": ({"nightjar_missed_deliveries": "1x600"}, 70),
    "NightjarFailedJobs": ({'nightjar_handler_runs_total{handler="merge",outcome="failed"}': "_x18 1x600"}, 100),
    "NightjarGitHubFailing": (
        {
            'nightjar_github_requests_total{method="GET",route="/app",status="none"}': "0+6x600",
            'nightjar_github_requests_total{method="GET",route="/app",status="200"}': "0+1x600",
        },
        40,
    ),
    "NightjarQuotaLow": ({'nightjar_github_quota_remaining{installation="1",resource="core"}': "499x600"}, 20),
    "NightjarBucketNotRead": ({'nightjar_results_listed_age_seconds{repository="octocat/compiler"}': "3700x90"}, 20),
    "NightjarQueueNotRead": ({'nightjar_results_queue_heard_age_seconds{queue="q"}': "301x90"}, 20),
    "NightjarLabSilent": (
        {'nightjar_results_newest_run_age_seconds{lab="example-lab",target="adreno"}': "130000x90"},
        20,
    ),
    "NightjarRunsWaiting": ({'nightjar_results_waiting_runs{repository="octocat/compiler"}': "3x600"}, 25 * HOUR),
    "NightjarNoLabClaims": (
        {
            f"nightjar_device_jobs_oldest_queued_seconds{{{DEVICE}}}": "3700x90",
            f'nightjar_device_jobs{{{DEVICE},state="leased"}}': "0x90",
        },
        20,
    ),
    "NightjarRepositoryFileInvalid": (
        {'nightjar_repository_file_faults{repository="octocat/compiler"}': "1x600"},
        25 * HOUR,
    ),
    "NightjarTimerFailed": ({'nightjar_timer_last_outcome{timer="nightly",outcome="failed"}': "1x600"}, 25 * HOUR),
    "NightjarNightlyNotRun": ({'nightjar_timer_last_run_age_seconds{timer="nightly"}': "94000x90"}, 20),
    "NightjarLastGoodOld": ({'nightjar_last_good_lag_seconds{repository="octocat/compiler"}': "87000x600"}, 70),
}
"""By alert: series, with a value every five minutes, and the minute at which it fires."""


def rules() -> list[dict[str, Any]]:
    loaded = YAML(typ="safe").load(ALERTS)
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def test_prometheus_accepts_the_rules() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", ALERTS)


async def test_the_rules_use_metrics_and_labels_that_the_bot_has(tmp_path: Path) -> None:
    labels = await bot_metrics(tmp_path)
    assert {rule["alert"]: list(unknown_in(rule["expr"], labels)) for rule in rules()} == {name: [] for name in FIRES}


async def test_an_unknown_metric_or_label_is_detected(tmp_path: Path) -> None:
    labels = await bot_metrics(tmp_path)
    wrong = 'sum by (lab) (rate(nightjar_deliveries_total{result="failed"}[1h])) > nightjar_oldest_seconds'
    assert list(unknown_in(wrong, labels)) == [
        "nightjar_deliveries_total{result}",
        "nightjar_oldest_seconds",
        "by (lab)",
    ]


def test_not_ready_covers_the_checks_that_make_readyz_fail() -> None:
    checks = re.findall(r'HealthCheck\("([a-z ]+)", (.*)\),\n', Path(serve.__file__).read_text())
    fatal = {name for name, rest in checks if "fatal=False" not in rest}
    expressions = {rule["alert"]: rule["expr"] for rule in rules()}
    [names] = re.findall(r'check=~"(.*)"', expressions["NightjarNotReady"])
    assert set(names.split("|")) == fatal
    assert f'check!~"{names}"' in expressions["NightjarCheckFailing"]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    annotations = rule["annotations"]
    assert set(annotations) == {"summary", "action", "runbook"}
    page, _, anchor = annotations["runbook"].partition("#")
    assert anchor == rule["alert"].lower()
    assert anchor in {anchor_of_page for *_, anchor_of_page in headings((ROOT / page).read_text())}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_the_page_on_alarms_describes_exactly_the_alerts() -> None:
    titles = [title for level, title, _ in headings((ROOT / "docs/alarms.md").read_text()) if level == 3]
    assert titles == [rule["alert"] for rule in rules()]


def test_every_alert_fires_when_it_should_and_none_while_all_is_well(tmp_path: Path) -> None:
    assert set(FIRES) == {rule["alert"] for rule in rules()}
    cases = [_case(f'="{name}"', series, minute) for name, (series, minute) in FIRES.items()]
    cases.append(_case('!=""', HEALTHY, 26 * HOUR, fires=False))
    file = tmp_path / "cases.yaml"
    # JSON is YAML.
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "5m", "tests": cases}))
    promtool("test", "rules", file)


def _case(names: str, series: dict[str, str], minute: int, *, fires: bool = True) -> dict[str, Any]:
    """Return a test of promtool: whether alerts with these names fire at a minute."""
    condition = f'count(ALERTS{{alertname{names},alertstate="firing"}})'
    return {
        "name": names,
        "interval": "5m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": condition,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }
