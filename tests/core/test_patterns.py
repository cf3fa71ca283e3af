"""`bot.core.patterns` finds what `re` finds in any text, and refuses what RE2 cannot match."""

import fnmatch
import re
import subprocess
import sys

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bot.core.patterns import LETTER_OR_DIGIT, SPACE, Pattern, escape_pattern, glob, without_half_pairs
from sandbox import GitHubSandbox

ANY = st.text(st.sampled_from("ab12 /-[]*?!\n\t\u00a0\u3000é😀\ud800\udc00\ufffd"), max_size=30)
SOURCES = {
    "[ab]+": "[ab]+",
    "(a)|(b)1?": "(a)|(b)1?",
    f"[{SPACE}]+": r"\s+",
    f"[{LETTER_OR_DIGIT}_]+": r"\w+",
    ".": ".",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("source", SOURCES)
@given(text=ANY)
@example(text="a\ud800b")
@example(text="é1 a😀b")
def test_it_finds_what_re_finds(source: str, text: str) -> None:
    matches = [(match.start(), match.end(), match[0]) for match in Pattern(source).finditer(text)]
    expected = [(match.start(), match.end(), match[0]) for match in re.finditer(SOURCES[source], text)]
    assert matches == expected


@given(text=ANY)
def test_unmatched_text_stays_as_it_is(text: str) -> None:
    assert Pattern("[ab]").sub("-", text) == re.sub("[ab]", "-", text)
    assert Pattern("[ab]+").split(text) == re.split("[ab]+", text)
    assert Pattern("([ab])1").sub(lambda match: f"{match[1]}!", text) == re.sub("([ab])1", r"\1!", text)


def test_an_empty_match_is_found_once() -> None:
    assert Pattern("^", by_line=True).sub("> ", "é\nb\n\nc") == "> é\n> b\n> \n> c"


def test_a_replacement_is_text() -> None:
    assert Pattern("(a)").sub(r"\1\g<1>", "xax") == r"x\1\g<1>x"


def test_half_a_surrogate_pair_counts_as_u_fffd() -> None:
    match = Pattern(r"a(?P<half>\x{fffd})(b)").search("éa\ud800b")
    assert match is not None
    assert (match.start(), match.end(), match["half"], match.groups()) == (1, 4, "\ud800", ("\ud800", "b"))
    assert without_half_pairs("a\ud800\udc00b") == "a\ufffd\ufffdb"


def test_a_group_that_took_no_part_is_none() -> None:
    match = Pattern("(?P<x>a)|(b)").fullmatch("b")
    assert match is not None
    assert (match["x"], match[2]) == (None, "b")


def test_a_pattern_that_re2_cannot_match_in_linear_time_is_refused() -> None:
    for source in (r"(?=a)", r"(?<!a)b", r"(a)\1", "("):
        with pytest.raises(ValueError, match="no pattern of RE2"):
            Pattern(source).search("")


@given(text=ANY)
def test_an_escaped_text_matches_itself(text: str) -> None:
    assert Pattern(escape_pattern(text), dot_is_any=True).fullmatch(text)


@given(
    pattern=st.text(st.sampled_from("ab-]*?![/.\n"), max_size=12),
    name=st.text(st.sampled_from("ab-]![*/.\n"), max_size=12),
)
@example(pattern="[!]a]", name="b")
@example(pattern="[]-a]", name="a")
@example(pattern="[b-a]", name="a")
@example(pattern="[!b-a]", name="a")
@example(pattern="[a-]", name="-")
@example(pattern="[--/]", name=".")
@example(pattern="[a", name="[a")
@example(pattern="[!]", name="[!]")
def test_a_glob_matches_what_fnmatch_matches(pattern: str, name: str) -> None:
    # After an empty range, as in `[b-a!c]`, fnmatch reads `!` as a negation.
    assume("!" not in [after[1:2] for after in pattern.split("-")[1:]])
    assert (glob(pattern).fullmatch(name) is not None) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "matching", "not_matching"),
    [
        ("*", ["", "a", "a/b\n"], []),
        ("a?c", ["abc", "a\nc"], ["ac", "abbc"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[abc]", ["a", "b", "c"], ["d", "X", "ab", ""]),
        ("[a-c]", ["a", "b", "c"], ["-", "d"]),
        ("[b-b]", ["b"], ["-", "a"]),
        ("[a-cx]", ["b", "x"], ["-", "y"]),
        ("[xa-c]", ["b", "x"], ["-", "y"]),
        ("[a-c-e]", ["b", "-", "e"], ["d"]),
        ("[a-]", ["a", "-"], ["b", ","]),
        ("[-a]", ["a", "-"], ["b", ","]),
        ("[c-a]", [], ["a", "b", "c", "-"]),
        ("[!a-c]", ["d", "-", "!"], ["a", "b", "c"]),
        ("[!c-a]", ["a", "b", "\n"], [""]),
        ("[a!]", ["a", "!"], ["b"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[!]a]", ["b", "!"], ["]", "a"]),
        ("[!]", ["[!]"], ["!", "a"]),
        ("[a", ["[a"], ["a"]),
        ("[a]b[c]", ["abc"], ["ab[c]"]),
    ],
)
def test_a_glob_reads_each_form_of_a_set(pattern: str, matching: list[str], not_matching: list[str]) -> None:
    assert [name for name in (*matching, *not_matching) if glob(pattern).fullmatch(name)] == matching
    assert [name for name in (*matching, *not_matching) if fnmatch.fnmatchcase(name, pattern)] == matching


MATCHING_ALL = """
import gc, sys
import re2
import bot.app.serve
from bot.app.features import ALL_FEATURES
from bot.core.patterns import Pattern
from bot.core.redaction import Redactor

redactor = Redactor([sys.argv[1]])
texts = ["On 29 Nov 2026, octocat wrote: " * 20, "a/b:c=d&e%25%3A " * 50, "".join(map(chr, range(32, 0x2000)))]
encoded_texts = [text.encode() for text in texts]
patterns = [pattern for pattern in gc.get_objects() if isinstance(pattern, Pattern)]
for pattern in patterns:
    print(repr(pattern.source[:80]), file=sys.stderr, flush=True)
    match = pattern.compiled(log_errors=True)._regexp.Match
    for encoded in encoded_texts:
        match(re2._Anchor.UNANCHORED, encoded, 0, len(encoded))
print(len(patterns))
"""


def test_each_pattern_has_memory_enough_for_re2s_fast_way() -> None:
    """Without it, the search for secrets in each line of the log took twenty times as long."""
    command = [sys.executable, "-c", MATCHING_ALL, GitHubSandbox().create_app("nightjar", events=()).private_key]
    matching = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(matching.stdout) > 200
    assert "DFA out of memory" not in matching.stderr
