"""Reading any file ends soon, with a configuration or with faults."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.app.load import parse_config
from bot.config import ConfigError, ConfigFault
from bot.config.source import MAX_BYTES

PIECES = [
    *(
        "mentions",
        "public_url",
        "defaults",
        "repositories",
        "octocat/compiler",
        "slow_tests",
        "rerun",
        "jenkins",
        "url",
    ),
    *(
        "allow",
        "status",
        "branches",
        "help",
        "nightly",
        "author",
        "https://ci.example.org",
        '"@ci"',
        "@ci",
        "*/x",
        "&a",
    ),
    *(
        "true",
        "false",
        "null",
        "~",
        "1",
        "-1.5e9",
        "0x1F",
        ".nan",
        "2026-11-20",
        "!!int",
        "!x",
        "<<",
        "%YAML 1.1",
        "---",
    ),
    *(
        ": ",
        ":",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        '"',
        "'",
        "|",
        ">",
        "#",
        "\n",
        "\n  ",
        "\n    ",
        "\t",
        " ",
        "\r\n",
    ),
    *("\u2028", "\x85", "\ufeff", "\0", "\x1b", "é", "\U0001f426"),
]


def outcome(raw: bytes) -> list[str]:
    """Return the messages of all faults, each of which must have a place and fit into a line; none for a good file."""
    faults = _faults(raw)
    if faults is None:
        return []
    assert faults
    assert all(fault.line >= 1 and fault.column >= 1 for fault in faults)
    assert all(fault.message and str(fault).isprintable() for fault in faults)
    return [fault.message for fault in faults]


def _faults(raw: bytes) -> tuple[ConfigFault, ...] | None:
    try:
        parse_config(raw, "app.yaml")
    except ConfigError as error:
        return error.faults
    return None


@pytest.mark.no_cover
@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("repositories: {octocat/compiler: {slow_tests: {branches: [99999999999999999999999]}}}")
@example('"\\ud800": 1')
@example("a: !<\n")
@example("%YAML 9.9\n---\na: 1")
@example("%YAML 1.11")
@example("? |\n a\n: 1")
@example(": \u2028\r\nmentions")
@example("a: 1\n\u3000\nb: 1")
def test_any_yaml_ish_text_is_accepted_or_explained(text: str) -> None:
    outcome(text.encode())


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_accepted_or_explained(raw: bytes) -> None:
    outcome(raw)


KEYS = st.sampled_from(
    [
        *("mentions", "public_url", "defaults", "repositories", "octocat/compiler", "Octocat/Compiler", "slow_tests"),
        *("rerun", "jenkins", "url", "allow", "status", "branches", "help", "cc_reviewers", "nightly", "x"),
    ]
)
SCALARS = st.sampled_from(["true", "false", "", "1", "text", '"@ci"', "author", "https://ci.example.org", '"*"'])
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(item or 'null' for item in items)}]")
        | st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=20,
)


@pytest.mark.no_cover
@settings(deadline=None)
@given(TREES)
def test_any_tree_of_known_keys_is_accepted_or_explained(text: str) -> None:
    for message in outcome(text.encode()):
        assert "not valid YAML" not in message


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a" * (MAX_BYTES + 1), "the file is larger than 256 KiB, the maximum"),
        (b"[" * MAX_BYTES, "the file is nested deeper than 16 levels, the maximum"),
        (b"- " * 50_000, "the file is nested deeper than 16 levels, the maximum"),
        (b"[" + b"a," * 50_000 + b"]", "the file has more than 20,000 keys and values, the maximum"),
        (
            b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (n, n, n - 1, n - 1) for n in range(98, 123)),
            "anchors and aliases (& and *) are not supported; write the value out, or share it through defaults",
        ),
        (
            b"defaults: {slow_tests: {branches: ["
            + b"a," * 5_000
            + b"]}}\nrepositories:\n"
            + b"".join(b" o/r%d:\n" % n for n in range(4_000)),
            "defaults and patterns, repeated below every repository, make more than 200,000 values, the maximum; "
            "shorten them, or write a pattern such as octo-org/* in place of many repositories",
        ),
    ],
    ids=["large", "deep flow", "deep block", "many", "billion laughs", "large defaults"],
)
def test_a_bomb_is_refused(raw: bytes, expected: str) -> None:
    assert outcome(raw) == [expected]


@pytest.mark.no_cover
def test_thousands_of_faults_are_all_reported() -> None:
    raw = b"repositories:\n o/r:\n" + b"".join(b"  slow_testz%d: 1\n" % n for n in range(3_000))
    assert len(outcome(raw)) == 3_000
