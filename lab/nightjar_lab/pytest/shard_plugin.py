"""`--shard`: select one shard of the tests, the same in each worker of pytest-xdist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from nightjar_formats.items import counted, first_of
from nightjar_formats.strict_json import read_json
from nightjar_lab.pytest import run_texts as texts
from nightjar_lab.pytest.durations import DurationsUnavailable, KnownDuration, durations_from
from nightjar_lab.pytest.printable import printable
from nightjar_lab.pytest.report import REPORT, Report
from nightjar_lab.pytest.shards import ShardPlan, ShardSpec, assign_shards

MINUTE = 60.0
SENT = "nightjar_durations"
"""The key under which workers find the durations: they are read once, so that all workers assign the same shards."""


class Sharding:
    """Deselects the tests of other shards, after all other plugins have selected tests."""

    def __init__(self, config: pytest.Config, shard: ShardSpec, source: str | None) -> None:
        self._shard = shard
        self._config = config
        self.counts: Mapping[str, Any] | None = None
        """The members that the report has about the shard."""
        self._notice = ""
        sent_durations = getattr(config, "workerinput", {}).get(SENT)
        if sent_durations is not None:
            self.durations = {test: KnownDuration(*fields) for test, fields in read_json(sent_durations).items()}
        else:
            self.durations, self._notice = past_durations(source, texts.DURATIONS_UNAVAILABLE)

    def pytest_report_header(self) -> list[str]:
        """Say at once that the durations are missing. A warning would be an error under `-W error`."""
        return [self._notice] if self._notice else []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker the durations."""
        node.workerinput[SENT] = json.dumps(self.durations)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Select the tests of this shard."""
        seconds = {test: duration.seconds for test, duration in self.durations.items()}
        plan = assign_shards([item.nodeid for item in items], seconds, self._shard.total)
        selected = [item for item, shard in zip(items, plan.shards) if shard == self._shard.number]
        deselected = [item for item, shard in zip(items, plan.shards) if shard != self._shard.number]
        self._note(plan, len(selected), len(items))
        if deselected:
            config.hook.pytest_deselected(items=deselected)
            items[:] = selected

    def _note(self, plan: ShardPlan, selected_count: int, all_count: int) -> None:
        self.counts = {"mine": selected_count, "all": all_count, "known": plan.known, "plan": plan.fingerprint}
        if plan.seconds:
            self.counts = {
                **self.counts,
                "seconds": plan.seconds[self._shard.number - 1],
                "all_seconds": sum(plan.seconds),
            }

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let an empty shard pass, and send the counts of a worker to the controller."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["nightjar_shard"] = self.counts
        report = self._config.pluginmanager.get_plugin(REPORT)
        if isinstance(report, Report) and self.counts:
            report.session["shard"] = self.counts
        if (
            self.counts
            and not self.counts["mine"]
            and self.counts["all"]
            and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
        ):
            session.exitstatus = pytest.ExitCode.OK

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read what a worker selected: the controller collects nothing itself."""
        self.counts = self.counts or getattr(node, "workeroutput", {}).get("nightjar_shard")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print which share of all tests this shard has."""
        if self._notice:
            terminalreporter.write_line(self._notice, yellow=True)
        if self.counts:
            terminalreporter.write_line(shard_summary(self._shard, self.counts))


def shard_summary(shard: ShardSpec, counts: Mapping[str, Any]) -> str:
    """Return one line about a shard."""
    if not counts["mine"] and counts["all"]:
        return texts.SHARD_EMPTY.format(shard=shard, all=counted(counts["all"]))
    time = ""
    if "seconds" in counts:
        minutes = (f"{counts[name] / MINUTE:.1f}" for name in ("seconds", "all_seconds"))
        time = texts.SHARD_TIME.format(mine=first_of(minutes), all=first_of(minutes))
    return texts.SHARD_SUMMARY.format(
        shard=shard,
        mine=f"{counts['mine']:,}",
        all=counted(counts["all"]),
        time=time,
        known=f"{counts['known']:,}",
        plan=counts["plan"],
    )


def past_durations(source: str | None, text: str) -> tuple[dict[str, KnownDuration], str]:
    """Return the known durations of tests, and a notice if they are not available, from the template `text`."""
    if not source:
        return {}, ""
    try:
        return durations_from(source), ""
    except DurationsUnavailable as unavailable:
        return {}, text.format(source=printable(source), reason=printable(str(unavailable)))
