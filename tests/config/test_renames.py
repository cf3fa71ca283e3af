"""`renames` in app.yaml: exact names and prefixes; errors for loops, duplicates and meaningless patterns."""

from __future__ import annotations

import pytest

from bot.app.load import parse_config
from bot.config.faults import ConfigError
from handlers.results.config import RENAMES


def written(items: str) -> bytes:
    return f"repositories:\n  octocat/compiler:\n    renames: {items}\n".encode()


def test_names_and_prefixes_are_read() -> None:
    config = parse_config(written('[{from: kernel.poll.*, to: "*"}, {from: "t/a.py::x[a*b]", to: y}]'), "app.yaml")
    repository = config.repository("octocat/compiler")
    assert repository is not None
    assert [repository.of(RENAMES).aliases.canonical(name) for name in ("kernel.poll.a", "t/a.py::x[a*b]")] == [
        "a",
        "y",
    ]


def test_without_the_key_there_are_no_aliases() -> None:
    repository = parse_config(b"repositories: {octocat/compiler: {}}", "app.yaml").repository("octocat/compiler")
    assert repository is not None
    assert not repository.of(RENAMES).aliases


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ("[{from: a, to: b}, {from: b, to: a}]", "renames: must not form a cycle; a, b do"),
        ("[{from: a.*, to: b.*}, {from: b.*, to: a.*}]", "renames: must not form a cycle; a.*, b.*"),
        (
            "[{from: a, to: b}, {from: a, to: c}]",
            "renames: must have each from only once; a is there twice, remove one of them",
        ),
        ("[{from: a, to: a}]", "renames[0]: from and to must differ"),
        ("[{from: a.*, to: b}]", "renames[0]: from and to must both end with *, or neither"),
        ("[{from: a, to: b.*}]", "renames[0]: from and to must both end with *, or neither"),
        ('[{from: "*", to: b.*}]', "renames[0]: from must have text before the *"),
        ("[{from: a*, to: b.*}]", "renames[0].from: can have a * only at its end, after . or / or :"),
        ("[{from: a.*.c, to: b}]", "renames[0].from: can have a * only at its end"),
        ("[{from: a.*, to: b.*.*}]", "renames[0].to: can have a * only at its end"),
        ("[{from: a}]", "renames[0]: the key to is missing"),
        ("[{from: a, to: 5}]", "renames[0].to: is a number; it must be the ID of a test"),
        ('[{from: a, to: ""}]', "renames[0].to: must be the ID of a test, or the beginning of IDs with a star"),
        ("{a: b}", "renames: is a mapping; it must be a list"),
        ("[{from: a, to: b, suite: c}]", "renames[0].suite: unknown key"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_it(items: str, fault: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config(written(items), "app.yaml")
    assert fault in str(error.value)
