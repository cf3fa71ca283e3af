"""Compare the bot's metrics and their labels with the expressions of Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.conversations.town import town

SERVED_BY_PROMETHEUS = frozenset({"job", "instance", "pod"})
METRIC = re.compile(r"\b((?:nightjar|process)_[a-z0-9_]+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"([a-z_]+)(?:=~|!~|!=|=)\"")
GROUPING = re.compile(r"\b(?:by|without|on) \(([^)]*)\)")
TEXTUAL = re.compile(r"\"[^\"]*\"")

Labels = Mapping[str, frozenset[str]]
"""The labels of each metric's series, including those that Prometheus adds."""


async def bot_metrics(tmp_path: Path) -> Labels:
    """Return the metrics of a bot with all features; histograms under each of their three names."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as bot_town:
        registry = bot_town.bot.metrics.registry
        # The library only shows the labels of a metric in its series, and most have none yet.
        names = registry._collector_to_names.items()
        labels = {
            name: frozenset(getattr(collector, "_labelnames", ())) | SERVED_BY_PROMETHEUS | {"le", "version"}
            for collector, all_names in names
            for name in all_names
        }
        # The metrics of the process are created when they are read.
        samples = (sample for metric in registry.collect() for sample in metric.samples)
        labels |= {sample.name: SERVED_BY_PROMETHEUS for sample in samples if sample.name.startswith("process_")}
    assert "nightjar_deliveries_total" in labels
    return labels


def unknown_in(expression: str, labels: Labels) -> Iterator[str]:
    """Yield the metrics of an expression that the bot does not have, and labels that their series do not have."""
    used: set[str] = set()
    for name, selector in METRIC.findall(TEXTUAL.sub(lambda text: text[0].replace("}", ""), expression)):
        if name not in labels:
            yield name
            continue
        used |= labels[name]
        yield from (f"{name}{{{label}}}" for label in LABEL.findall(selector) if label not in labels[name])
    for group in GROUPING.findall(expression):
        yield from (f"by ({label})" for label in group.split(", ") if label and label not in used)
