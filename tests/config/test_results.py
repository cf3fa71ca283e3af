"""The keys below `results`: the labs, and where they upload."""

import pytest
from nightjar_formats.model import TARGET_WORDS

from bot.app.load import parse_config
from bot.config import ConfigError
from bot.results.settings.results import Results
from handlers.results.config import LAB_RESULTS
from tests.settings import enabled

LAB = "a name of letters, digits, . _ and -, as in example-lab"
TIME = "it must be a time such as 30s, 15m, 6h or 7d"


def faults_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text.encode(), "app.yaml")
    return str(caught.value).splitlines()


RESULTS = "repositories:\n  octocat/a:\n    results: %s\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("true", f"3:14: {{}}.results: the key labs is missing; it must be a mapping, each key {LAB}"),
        (
            "{queue: 'https://sqs.us-west-2.amazonaws.com/1/a', labs: {a: {targets: [x]}}}",
            "3:14: {}.results: queue needs bucket: only a bucket sends messages; name the bucket, or remove queue",
        ),
        (
            "{labs: {a: {targets: [x], presigned_uploads: true}}}",
            "3:14: {}.results: presigned_uploads needs bucket: without one, labs upload through the bot; name the "
            "bucket, or remove presigned_uploads",
        ),
        (
            "{bucket: b-1, labs: {example-lab: {targets: []}}}",
            "3:58: {}.results.labs.example-lab.targets: is empty; it must be a list or a mapping of names, each "
            + TARGET_WORDS,
        ),
        (
            "{bucket: b-1, labs: {a/b: {targets: [x]}}}",
            f"3:35: {{}}.results.labs.a/b: must be {LAB}",
        ),
        (
            '{bucket: b-1, labs: {a: {targets: [x], reproduce: "run {tst}"}}}',
            "3:64: {}.results.labs.a.reproduce: must not contain {tst}; available placeholders: "
            "{test}, {path}, {name}, {suite}, {target}, {sha}",
        ),
        (
            "{bucket: b-1, labs: {a: {targets: [x], reproduce: 'bash -c \"pytest {test}\"'}}}",
            "3:64: {}.results.labs.a.reproduce: must not have {test} in quotes: the value is already quoted",
        ),
        (
            "{bucket: b-1, labs: {a: {targets: [x], reproduce: 'ssh {target} pytest'}}}",
            "3:64: {}.results.labs.a.reproduce: must not pass {target} to ssh, which starts a second shell: there "
            "the name of a test could run as a command. Put ssh into a script of the lab",
        ),
        ("{bucket: b-1, poll: 30, labs: {a: {targets: [x]}}}", f"3:34: {{}}.results.poll: is a number; {TIME}"),
        ("{bucket: b-1, poll: 5w, labs: {a: {targets: [x]}}}", f"3:34: {{}}.results.poll: {TIME.removeprefix('it ')}"),
        (
            "{bucket: b-1, prefix: a//, labs: {a: {targets: [x]}}}",
            "3:36: {}.results.prefix: must be a folder with its slash at the end, as in results/, or nothing",
        ),
    ],
)
def test_a_fault_in_the_results_is_named_with_its_place(written: str, expected: str) -> None:
    message = "app.yaml:" + expected.replace("{}", "repositories.octocat/a")
    assert message in faults_of(RESULTS % written)


def test_keys_missing_in_the_defaults_may_be_set_by_each_repository() -> None:
    config = parse_config(
        b"defaults: {results: {bucket: device-results}}\n"
        b"repositories:\n"
        b"  octocat/a: {results: {labs: {example-lab: {targets: [adreno]}}}}\n"
        b"  octocat/b: {results: false}\n",
        "app.yaml",
    )
    here, there = config.repository("octocat/a"), config.repository("octocat/b")
    assert here is not None
    assert there is not None
    results = enabled(here, LAB_RESULTS)
    assert (results.bucket, list(results.labs), there.of(LAB_RESULTS)) == ("device-results", ["example-lab"], None)


def test_keys_missing_in_both_the_defaults_and_the_repository_are_reported() -> None:
    assert faults_of("defaults: {results: {bucket: b-1}}\nrepositories: {octocat/a: }") == [
        f"app.yaml:1:21: defaults.results: the key labs is missing; it must be a mapping, each key {LAB}"
    ]


@pytest.mark.parametrize(
    ("written", "expected"), [("{poll: 15s}", 15.0), ("{}", 30.0), ("{queue: http://127.0.0.1/q}", 600.0)]
)
def test_a_bucket_with_a_queue_is_listed_rarely(written: str, expected: float) -> None:
    keys = {"bucket": "b-1", "labs": {"a": {"targets": ("x",)}}} | {
        key: value for key, _, value in [part.partition(": ") for part in written.strip("{}").split(", ")] if key
    }
    assert Results.model_validate(keys).poll_seconds == expected
