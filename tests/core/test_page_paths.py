"""The paths of our pages."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from bot.core.page_paths import help_path, history_path, lab_path, pull_path, query, run_path, view_path

HERE = "octocat/compiler"


def test_each_page_has_one_path() -> None:
    assert view_path(HERE) == "/r/octocat/compiler"
    assert view_path(HERE, "flaky", target="example-lab/adreno", q="") == (
        "/r/octocat/compiler/flaky?target=example-lab%2Fadreno"
    )
    assert run_path(HERE, "hubot-lab/rpi-5@rack:2", "ab", "run-1") == (
        "/r/octocat/compiler/runs/hubot-lab/rpi-5%40rack%3A2/ab/run-1"
    )
    assert (pull_path(HERE, 7), lab_path(HERE, "hubot-lab")) == (
        "/r/octocat/compiler/pulls/7",
        "/r/octocat/compiler/labs/hubot-lab",
    )
    assert (help_path(), help_path(HERE)) == ("/help", "/help?repo=octocat%2Fcompiler")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_path_of_any_test_name_is_one_valid_address(name: str) -> None:
    path = urlsplit(history_path(HERE, name, "example-lab/adreno"))
    assert (path.path, path.fragment) == ("/r/octocat/compiler/tests", "")
    assert parse_qs(path.query, keep_blank_values=True) == {"id": [name], "target": ["example-lab/adreno"]}
    assert run_path(HERE, f"lab/{name.replace('/', '')}x", "ab", name).count("/") == 8
    assert history_path(HERE, "\ud800") == "/r/octocat/compiler/tests?id=%3F"


VALUES = st.text() | st.integers() | st.booleans() | st.lists(st.text(), min_size=1)


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_a_query_is_quoted_like_that_of_the_standard_library(values: dict[str, object]) -> None:
    filled = {name: value for name, value in values.items() if value != ""}
    assert query(values) == (f"?{urlencode(filled, doseq=True, errors='replace')}" if filled else "")
