"""`measure` writes what a test measures into every report, and refuses what a report must not have."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.readers import read
from nightjar_lab.main import kit

from tests.lab.plugin.reports import OPTION, REPORT, outcomes

TESTS = """
    import pytest

    def test_values(measure):
        measure("latency", 2.5, unit="ms", better="lower")
        measure("latency", 1.5, unit="ms", better="lower", samples=[1, 1.5, 2])
        measure("delegated_nodes", 12, unit="nodes", better="higher")
        measure("loss", 0.1 + 0.2)

    def test_timer(measure):
        calls = []
        assert measure.timer(warmup=2, repeats=3)(calls.append, 1) is None
        assert len(calls) == 5
        block = measure.timer("conv", warmup=1)
        for _ in range(4):
            with block:
                pass
        with pytest.raises(KeyError), block:
            raise KeyError
        assert len(block.samples) == 3
        with measure.timer("skipped", warmup=1):
            pass
        with measure.timer("once"):
            pass

    def test_refused(measure):
        for arguments, text in (
            ({"name": "a", "value": float("nan")}, "measurement a of .*test_refused is NaN"),
            ({"name": "a", "value": 1, "samples": [1, float("inf")]}, "sample 2 .* is infinity"),
            ({"name": "a b", "value": 1}, "has the name"),
            ({"name": "a", "value": 1, "unit": "m s"}, "without spaces"),
            ({"name": "a", "value": 1, "better": "upper"}, "better is upper: use lower or higher"),
        ):
            with pytest.raises(ValueError, match=text):
                measure(**arguments)
        with pytest.raises(ValueError, match="at least 0 repetitions of warm-up and 1"):
            measure.timer(repeats=0)
        for number in range(64):
            measure(f"m{number}", number)
        with pytest.raises(ValueError, match="has 65 measurements, and 64 are allowed"):
            measure("m64", 1)

    def test_many_samples(measure):
        measure("latency", 1, samples=range(1234))

    def test_none(): pass
"""
JUNIT = "junit.xml"


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "worker"])
def test_every_report_has_the_measurements(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(test_o=TESTS)
    assert pytester.runpytest_inprocess(*OPTION, f"--junitxml={JUNIT}", *workers).ret == pytest.ExitCode.OK
    assert set(outcomes().values()) == {"passed"}
    for path in (Path(REPORT), Path(JUNIT)):
        with path.open("rb") as file:
            tests = {case.name: case.measurements for case in read(file, path.name)}
        assert tests["test_values"] == (
            Measurement("latency", 1.5, "ms", Better.LOWER, (1, 1.5, 2)),
            Measurement("delegated_nodes", 12, "nodes", Better.HIGHER),
            Measurement("loss", 0.1 + 0.2),
        )
        assert [(name, unit, len(samples)) for name, _, unit, _, samples in tests["test_timer"]] == [
            ("latency", "s", 3),
            ("conv", "s", 3),
            ("once", "s", 0),
        ]
        assert len(tests["test_refused"]) == 64
        [thinned] = tests["test_many_samples"]
        assert thinned.samples == tuple(range(0, 1234, 3))
        assert tests["test_none"] == ()
    checked = CliRunner().invoke(kit, ["check", REPORT])
    assert (
        "  measurements: conv (s) of 1 test, delegated_nodes (nodes) of 1 test, latency of 1 test, " in checked.output
    )
    assert " and 51 more" in checked.output
    as_json = CliRunner().invoke(kit, ["check", REPORT, "--json"]).output
    assert '"name": "delegated_nodes",\n            "unit": "nodes",\n            "better": "higher",' in as_json
