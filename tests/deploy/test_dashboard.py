"""The Grafana dashboard:

expressions that Prometheus accepts, with the bot's own metrics, in panels that do not overlap.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.app.test_surface import METRICS
from tests.deploy.measured import bot_metrics, unknown_in
from tests.deploy.tools import DASHBOARD, promtool

VARIABLES = {"$__rate_interval": "5m", "$job": ".*", "$repository": ".*"}
COLUMNS = 24


def board() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return loaded


def expressions() -> list[str]:
    queries = [target["expr"] for panel in board()["panels"] for target in panel.get("targets", ())]
    for variable, value in VARIABLES.items():
        queries = [expression.replace(variable, value) for expression in queries]
    return queries


def test_prometheus_accepts_every_expression(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(expressions())]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)


async def test_the_panels_use_metrics_and_labels_that_the_bot_has(tmp_path: Path) -> None:
    labels = await bot_metrics(tmp_path)
    assert [
        (expression, wrong) for expression in expressions() if (wrong := list(unknown_in(expression, labels)))
    ] == []


def test_every_metric_of_the_bot_is_on_the_dashboard() -> None:
    text = DASHBOARD.read_text()
    assert {name for name in METRICS if not re.search(rf"\b{name}(_bucket)?\b", text)} == set()


def test_every_variable_is_defined_and_the_reader_chooses_every_source() -> None:
    defined = {f"${variable['name']}" for variable in board()["templating"]["list"]} | {"$__rate_interval"}
    used = set(re.findall(r"\$[a-z_]+", " ".join(map(json.dumps, board()["panels"]))))
    assert used <= defined
    sources = {target["datasource"]["uid"] for panel in board()["panels"] for target in panel.get("targets", ())}
    assert sources == {"${datasource}"}


def test_panels_have_their_own_numbers_and_titles_and_do_not_overlap() -> None:
    panels = board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and (panel["type"] == "row" or panel["description"]) for panel in panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= COLUMNS for place in places)
    assert [pair for pair in combinations(places, 2) if _overlap(*pair)] == []


def _overlap(first: dict[str, int], second: dict[str, int]) -> bool:
    return all(
        first[start] < second[start] + second[size] and second[start] < first[start] + first[size]
        for start, size in (("x", "w"), ("y", "h"))
    )
