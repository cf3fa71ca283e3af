"""`quarantine` in app.yaml: owner, reason, issue and last day of each item, and the errors for invalid values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.app.load import parse_config
from bot.config.faults import ConfigError
from handlers.results.config import QUARANTINE

ITEM = {
    "test": "tests/test_hexagon.py::test_matmul",
    "owner": "octocat",
    "reason": "Times out on old firmware",
    "issue": "https://github.com/octocat/compiler/issues/12",
    "until": "2027-01-31",
}
RESULTS = {"bucket": "device-results", "labs": {"example-lab": {"targets": ["hexagon-v73"]}}}


def written(results: dict[str, Any] | None = RESULTS, **keys: Any) -> bytes:
    item = {name: value for name, value in (ITEM | keys).items() if value is not None}
    repository = {"quarantine": [item]} | ({"results": results} if results else {})
    return json.dumps({"repositories": {"octocat/compiler": repository}}).encode()


def test_an_item_applies_to_all_targets_or_to_some() -> None:
    for targets in ([], ["example-lab/hexagon-v73"]):
        repository = parse_config(written(targets=targets), "app.yaml").repository("octocat/compiler")
        assert repository is not None
        (item,) = repository.of(QUARANTINE)
        assert (item.test, item.until, list(item.targets)) == (ITEM["test"], "2027-01-31", targets)


def test_a_day_needs_no_quotes() -> None:
    text = written().decode().replace('"2027-01-31"', "2027-01-31").encode()
    repository = parse_config(text, "app.yaml").repository("octocat/compiler")
    assert repository is not None
    assert repository.of(QUARANTINE)[0].until == "2027-01-31"


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"until": "2027-02-31"}, "quarantine[0].until: must be a date, as in 2027-01-31"),
        ({"until": "31.1.2027"}, "quarantine[0].until: must be a day, as in 2027-01-31"),
        ({"owner": "@octocat"}, "quarantine[0].owner: must be a person or a team on GitHub, without an @"),
        ({"issue": "12"}, "quarantine[0].issue: must be a web address"),
        ({"reason": None}, "quarantine[0]: the key reason is missing"),
        ({"owner": None}, "quarantine[0]: the key owner is missing"),
        ({"until": None}, "quarantine[0]: the key until is missing"),
        ({"test": "a*"}, "quarantine[0].test: can have a * only at its end"),
        ({"targets": ["hexagon-v73"]}, "quarantine[0].targets[0]: must be a lab and its target"),
        (
            {"targets": ["example-lab/adreno"]},
            "quarantine: names example-lab/adreno, but results.labs has no such lab and target",
        ),
        ({"results": None}, "quarantine: needs the key results"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_it(keys: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config(written(**keys), "app.yaml")
    assert fault in str(error.value)
