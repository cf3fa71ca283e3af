"""Names of targets may contain `@` and `:`, and survive every key, address and name that contains them."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.model import MANIFEST, TARGET_NAME, RunKey, TargetKey
from nightjar_formats.runs.manifest import run_key
from nightjar_formats.runs.offline_check import key_of
from nightjar_lab.stored import UploadVerifier

from bot.app.load import parse_config
from bot.aws.bucket import Arrival
from bot.aws.queue import arrivals
from bot.config import ConfigError
from bot.core.patterns import Pattern
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from handlers.results.config import LAB_RESULTS
from tests.aws.test_queue import message, record
from tests.conversations.lab import CONFIG
from tests.settings import enabled

SHA = "5" * 40
TARGETS = st.from_regex(Pattern(TARGET_NAME).source, fullmatch=True)
PREFIXES = st.sampled_from(["", "results/"])


def key_for(target: str) -> RunKey:
    return RunKey("octocat/compiler", "example-lab", target, SHA, "run-1")


@given(TARGETS, PREFIXES)
def test_a_key_of_the_bucket_contains_the_target_unchanged(target: str, prefix: str) -> None:
    key = key_for(target)
    assert run_key(f"{prefix}{key.folder}{MANIFEST}", prefix) == (key, MANIFEST)
    assert len(key.folder.split("/")) == 7
    assert not set(key.folder) & set("@:")


@given(TARGETS, TARGETS)
def test_two_targets_have_two_folders_and_two_check_runs(first_target: str, second_target: str) -> None:
    if first_target != second_target:
        assert key_for(first_target).folder != key_for(second_target).folder
        assert TargetKey("", "a", first_target).check_name != TargetKey("", "a", second_target).check_name
        guids = {CHECK_EVENT.guid(1, CheckEvent("a", target, SHA, 1)) for target in (first_target, second_target)}
        assert len(guids) == 2


@given(st.text(st.sampled_from("ab@:%4034Aa."), min_size=1, max_size=12))
def test_a_folder_has_only_one_notation(written: str) -> None:
    parsed = run_key(f"octocat/compiler/example-lab/{written}/{SHA}/run-1/{MANIFEST}", "")
    assert parsed is None or f"{parsed[0].folder}{MANIFEST}".split("/")[3] == written


@given(TARGETS)
def test_a_message_of_s3_names_the_same_run(target: str) -> None:
    key = f"results/{key_for(target).folder}{MANIFEST}"
    [arrival] = arrivals(message(record(key=quote_plus(key, safe="/"))))
    assert isinstance(arrival, Arrival)
    parsed = run_key(arrival.key, "results/")
    assert parsed is not None
    assert parsed[0].target == target


@given(TARGETS)
def test_an_api_request_names_the_same_target(target: str) -> None:
    address = urlsplit(UploadVerifier("https://ci.example.org", key_for(target)).path)
    assert parse_qs(address.query)["target"] == [target]
    assert not set(address.query) & set("@:")


@settings(deadline=None, max_examples=50)
@given(TARGETS)
def test_app_yaml_accepts_these_names(target: str) -> None:
    written = CONFIG.format(
        repository="octocat/compiler",
        features="",
        bucket="b-1",
        settle="1m",
        deadline="6h",
        queue="",
        more_labs="",
        targets=json.dumps([target]),
    )
    results = enabled(parse_config(written.encode(), "app.yaml").repositories["octocat/compiler"], LAB_RESULTS)
    assert tuple(results.labs["example-lab"].targets) == (target,)


@pytest.mark.parametrize("target", ["@a", ":a", "a/b", "a%40b", "a b", "a" * 65, "ä", ""])
def test_app_yaml_refuses_other_names(target: str) -> None:
    results = f"{{bucket: b-1, labs: {{a: {{targets: [{target!r}]}}}}}}"
    written = f"repositories:\n  octocat/a:\n    results: {results}".encode()
    with pytest.raises(ConfigError, match="a name of letters, digits"):
        parse_config(written, "app.yaml")


def test_a_folder_of_a_lab_is_recognized_by_its_path(tmp_path: Path) -> None:
    key = key_for("rpi-4@lab:1")
    assert key_of(tmp_path / key.folder) == key
    assert key.folder == f"octocat/compiler/example-lab/rpi-4%40lab%3A1/{SHA}/run-1/"
