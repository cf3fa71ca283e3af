"""`/r/{owner}/{repo}/compare/targets`: the same tests on a simulator and on the device."""

from __future__ import annotations

from pathlib import Path

from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.site import CONFIG, dashboard_site
from tests.results.uploads import Upload

PATH = "/r/octocat/compiler/compare/targets"
API = "/api/v1/repos/octocat/compiler/compare/targets"
PAIRED = CONFIG.replace(
    "targets: [hexagon-v73, adreno]",
    "targets: {hexagon-v73: nightly, adreno: nightly, simulator: {simulates: example-lab/hexagon-v73}}",
    1,
)
DEVICE, SIMULATOR = "example-lab/hexagon-v73", "example-lab/simulator"
ON_DEVICE = {"both": "passed", "wrong": "failed", "broken": "failed", "only_here": "passed", "no_device": "skipped"}
ON_SIMULATOR = {"both": "passed", "wrong": "passed", "broken": "failed", "no_device": "passed", "missing": "xfailed"}
ON_SIMULATOR |= {"sim_fails": "failed"}
ON_DEVICE |= {"sim_fails": "passed"}


def fill(store: ResultsStore) -> None:
    """Store a run of the simulator at two commits, and one of the device at the first of them."""
    later = Upload(2, {"both": "failed"}, target="simulator")
    for upload in (Upload(1, ON_DEVICE, target="hexagon-v73"), Upload(1, ON_SIMULATOR, target="simulator"), later):
        store.put(upload.run, upload.columns)


async def test_the_page_lists_what_passes_or_runs_on_one_of_the_two_only(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path, config=PAIRED, filled=fill) as site:
        _, page = await site.json(API)
        assert (page["target"], page["against"], page["simulator"]) == (DEVICE, SIMULATOR, SIMULATOR)
        assert page["commit"]["sha"] == page["against_commit"]["sha"]
        assert [(row["status"], row["test"]) for row in page["tests"]] == [
            ("fails-here", "wrong"),
            ("fails-there", "sim_fails"),
            ("only-there", "missing"),
            ("only-there", "no_device"),
            ("only-here", "only_here"),
            ("fails-on-both", "broken"),
        ]
        answer = "".join(part["text"] for part in page["answer"])
        assert answer.startswith(f"1 test passes on the simulator {SIMULATOR} and fails on the device {DEVICE}; ")
        assert f"2 tests run on the simulator {SIMULATOR} and not on the device {DEVICE}" in answer
        (step,) = page["next_steps"]
        assert step[-1]["text"] == "also run on the device 2 tests that only the simulator runs"
        _, _, text = await site.get(step[-1]["href"])
        assert "2 tests match" in text
        assert f"runs only on the simulator {SIMULATOR}" in text
        _, swapped = await site.json(f"{API}?target={SIMULATOR}&q=SIM")
        assert (swapped["against"], [row["status"] for row in swapped["tests"]]) == (DEVICE, ["fails-here"])
        _, other = await site.json(f"{API}?target={SIMULATOR}&against=example-lab/adreno")
        assert (other["simulator"], other["commit"]) == (None, None)
        _, _, text = await site.get(f"{API}?format=csv")
        assert text.splitlines()[0] == "status,suite,test"
        status, _, _ = await site.get(f"{PATH}?target=nosuch/target")
        assert status == 400
