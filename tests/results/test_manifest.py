"""What a manifest may contain, and what the lab reads if it contains anything else."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_ARTIFACT_BYTES, MAX_MANIFEST_BYTES
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.manifest import read_manifest, run_key

SHA = "5" * 40
KEY = RunKey("octocat/compiler", "example-lab", "hexagon-v73", SHA, "2026-11-20.1")
FILE = {"name": "te.xml", "format": "junit", "bytes": 8187, "sha256": "a" * 64}
LOG = {"name": "log.txt", "type": "text/plain", "bytes": 40, "sha256": "b" * 64}
LEAST = {"schema": 1, "sha": SHA, "suite": "operators", "files": [FILE]}
WHOLE = LEAST | {
    "attempt": 2,
    "shard": {"index": 1, "total": 4},
    "started_at": "2026-11-20T05:10:00Z",
    "finished_at": "2026-11-20T05:31:10.5+01:00",
    "exit_status": 1,
    "pull_request": 42,
    "environment": {"device": "Pixel 9", "cores": 8},
    "log_url": "https://lab.example.org/1",
    "artifacts": [LOG, LOG | {"name": "plot.png", "type": "image/png", "bytes": 5}],
}


def refusal(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(Refused) as caught:
        read_manifest(raw, KEY)
    return str(caught.value)


def test_only_four_keys_are_needed() -> None:
    manifest = read_manifest(json.dumps(LEAST).encode(), KEY)
    assert manifest.claims == Claims(suite="operators")
    assert [(file.name, file.format) for file in manifest.files] == [("te.xml", "junit")]


def test_all_other_keys_are_optional() -> None:
    manifest = read_manifest(json.dumps(WHOLE).encode(), KEY)
    assert manifest.bytes == 8187 + 45, "artifacts count against the lab's quota"
    types = [(artifact.name, artifact.media_type) for artifact in manifest.artifacts]
    assert types == [("log.txt", "text/plain"), ("plot.png", "image/png")]
    assert manifest.claims == Claims(
        suite="operators",
        attempt=2,
        shard_index=1,
        shard_total=4,
        started_at="2026-11-20T05:10:00Z",
        finished_at="2026-11-20T05:31:10.5+01:00",
        exit_status=1,
        pull_request=42,
        environment={"device": "Pixel 9", "cores": 8},
        log_url="https://lab.example.org/1",
    )


def test_unknown_keys_of_newer_labs_are_ignored() -> None:
    assert read_manifest(json.dumps(LEAST | {"energy_joules": 5}).encode(), KEY).claims.suite == "operators"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", "manifest.json is not JSON"),
        (b"\xff\xfe", "manifest.json is not JSON"),
        (b"[" * 100_000, "manifest.json is not JSON"),
        ([], "must hold a JSON object"),
        ({}, "schema must be 1"),
        (LEAST | {"schema": 2}, "schema must be 1"),
        (LEAST | {"schema": True}, "schema must be 1"),
        ({"schema": 1, "sha": SHA, "files": [FILE]}, "suite is missing; it must be up to 100 letters"),
        (LEAST | {"sha": "4" * 40}, f"sha is {'4' * 40}, but the folder is for {SHA}"),
        (LEAST | {"sha": SHA[:7]}, "sha must be 40 hexadecimal digits"),
        (LEAST | {"suite": "a|b"}, "suite must be up to 100 letters"),
        (LEAST | {"files": []}, "files is empty"),
        (LEAST | {"files": [FILE, FILE]}, "te.xml is named twice"),
        (LEAST | {"files": [FILE | {"name": "../te.xml"}]}, "files.0.name must be a file's name"),
        (LEAST | {"files": [FILE | {"name": "manifest.json"}]}, "must not name manifest.json itself"),
        (LEAST | {"files": [FILE | {"bytes": -1}]}, "files.0.bytes must be a whole number from 0"),
        (LEAST | {"files": [FILE | {"bytes": "8187"}]}, "files.0.bytes must be a whole number from 0"),
        (LEAST | {"files": [FILE | {"sha256": "A" * 64}]}, "files.0.sha256 must be 64 hexadecimal digits"),
        (LEAST | {"shard": {"index": 5, "total": 4}}, "shard.total must be a whole number from 1 to 10000, and not"),
        (LEAST | {"started_at": "yesterday"}, "started_at must be a time with its zone"),
        (LEAST | {"artifacts": {}}, "artifacts must be a list of at most 64 objects"),
        (LEAST | {"artifacts": [LOG] * 65}, "artifacts must be a list of at most 64 objects"),
        (LEAST | {"artifacts": [LOG | {"name": "../log.txt"}]}, "artifacts.0.name must be a file's name"),
        (LEAST | {"artifacts": [LOG | {"name": "лог.txt"}]}, "artifacts.0.name must be a file's name"),
        (LEAST | {"artifacts": [LOG | {"type": "text/html"}]}, "artifacts.0.type must be the type that belongs to"),
        (LEAST | {"artifacts": [LOG | {"type": ["text/plain"]}]}, "artifacts.0.type must be the type"),
        (LEAST | {"artifacts": [LOG | {"name": "log.svg"}]}, "log.svg has a type that is not accepted"),
        (LEAST | {"artifacts": [LOG | {"name": "log.html"}]}, "log.html has a type that is not accepted"),
        (LEAST | {"artifacts": [LOG | {"name": "a.png", "type": "text/plain"}]}, "a.png has a type that is not"),
        (LEAST | {"artifacts": [LOG | {"name": "x.xml"}]}, "x.xml has a type that is not accepted"),
        (LEAST | {"artifacts": [LOG, LOG]}, "log.txt is named twice"),
        (LEAST | {"artifacts": [LOG], "files": [FILE | {"name": "log.txt"}]}, "log.txt is named twice"),
        (LEAST | {"artifacts": [LOG | {"bytes": MAX_ARTIFACT_BYTES + 1}]}, "log.txt has more than 32 MiB"),
        (LEAST | {"environment": {"a": {"b": 1}}}, "environment must be an object of at most 100 texts"),
    ],
)
def test_a_wrong_value_is_reported_to_the_lab(value: object, expected: str) -> None:
    assert expected in refusal(value)


def test_several_faults_are_reported_together_and_many_are_counted() -> None:
    text = refusal(LEAST | {"suite": "", "attempt": 0, "exit_status": "x", "files": [FILE | {"bytes": -1}] * 9})
    assert "suite must be" in text
    assert text.endswith("; and 7 more")


def test_large_values_are_refused() -> None:
    with pytest.raises(TooMuch, match="larger than"):
        read_manifest(b" " * (MAX_MANIFEST_BYTES + 1), KEY)


def test_a_run_that_is_too_large_is_refused_before_any_file_is_read() -> None:
    files = [FILE | {"name": f"{n}.xml", "bytes": 1 << 28} for n in range(3)]
    assert "upload the run in shards" in refusal(LEAST | {"files": files})


def test_the_key_says_whose_run_it_is() -> None:
    key = f"results/octocat/compiler/example-lab/hexagon-v73/{SHA}/2026-11-20.1/manifest.json"
    assert run_key(key, "results/") == (KEY, "manifest.json")
    assert run_key(key.removeprefix("results/"), "") == (KEY, "manifest.json")


@pytest.mark.parametrize(
    "key",
    [
        "manifest.json",
        f"other/octocat/compiler/example-lab/hexagon-v73/{SHA}/1/manifest.json",
        f"results/octocat/compiler/example-lab/hexagon-v73/{SHA}/manifest.json",
        f"results/octocat/compiler/example-lab/hexagon-v73/{SHA}/1/2/manifest.json",
        f"results/octocat/compiler/../hexagon-v73/{SHA}/1/manifest.json",
        f"results/octocat/compiler/example-lab/hexagon-v73/{SHA[:39]}/1/manifest.json",
        f"results/octocat/compiler/example-lab/hexagon-v73/{SHA.replace('5', 'F')}/1/manifest.json",
        f"results/octocat/compiler/example-lab/hexagon-v73/{SHA}/a b/manifest.json",
    ],
)
def test_a_key_with_another_layout_is_not_a_run(key: str) -> None:
    assert run_key(key, "results/") is None


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted({*WHOLE, "x"})), JSON))
def test_any_content_is_read_or_refused(changes: dict[str, Any]) -> None:
    with suppress(Refused):
        assert read_manifest(json.dumps(WHOLE | changes).encode(), KEY).claims.attempt >= 1


def test_half_a_surrogate_pair_is_only_allowed_in_the_environment() -> None:
    manifest = read_manifest(json.dumps(LEAST | {"environment": {"device": "\ud800"}}).encode(), KEY)
    assert manifest.claims.environment == {"device": "\ud800"}
    assert "log_url must be" in refusal(LEAST | {"log_url": "\ud800"})


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 400 + ".5"])
@pytest.mark.parametrize("place", ["environment", "exit_status", "attempt", "a field of a newer lab"])
def test_a_number_that_is_not_finite_is_refused_with_its_text(number: str, place: str) -> None:
    value = {"temperature": 0} if place == "environment" else 0
    raw = json.dumps(LEAST | {place: value}).replace(": 0", f": {number}")
    assert refusal(raw.encode()).startswith("manifest.json is not JSON: ")
    assert number[:20] in refusal(raw.encode())


def test_the_environment_may_have_every_finite_number() -> None:
    numbers = {"largest": 1.7976931348623157e308, "least": 5e-324, "whole": 10**300}
    manifest = read_manifest(json.dumps(LEAST | {"environment": numbers}).encode(), KEY)
    assert manifest.claims.environment == numbers
