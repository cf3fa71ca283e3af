"""The text of the sticky comment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.text.sticky import (
    CUT,
    MARKER,
    SIZE_LIMIT,
    PostedComment,
    is_sticky,
    merged_sections,
    render,
    sections_of,
    with_section,
)

US, SOMEBODY = 99, 2
NAMES = st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True)
TEXTS = st.text(min_size=1, max_size=300).map(str.strip).filter(bool)


def comment(body: str, *, author: int = US, id: int = 1, updated_at: str = "2026-11-20T05:10:00Z") -> PostedComment:
    return PostedComment(id=id, author_id=author, body=body, updated_at=updated_at)


@pytest.mark.no_cover
@given(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=5))
def test_a_written_comment_can_be_read_again(sections: dict[str, str]) -> None:
    written: dict[str, str] = {}
    for name, text in sections.items():
        written = with_section(written, name, text)
    assert sections_of(render(written)) == written


def test_a_marker_that_somebody_else_wrote_is_not_ours() -> None:
    body = render({"docs": "built"})
    assert is_sticky(comment(body), US)
    assert not is_sticky(comment(body, author=SOMEBODY), US)


def test_an_answer_of_ours_that_quotes_a_sticky_comment_is_not_one() -> None:
    assert not is_sticky(comment(f"you wrote:\n{render({'docs': 'built'})}"), US)


def test_sections_keep_their_place_when_one_is_edited() -> None:
    sections = with_section({"docs": "old", "runtime": "slow"}, "docs", "new")
    assert list(sections.items()) == [("docs", "new"), ("runtime", "slow")]


@pytest.mark.parametrize("sections", [{"docs": "built"}, {"docs": "built", "welcome": "old"}, {}])
def test_a_section_with_precedence_comes_before_all_others(sections: dict[str, str]) -> None:
    ordered = with_section(sections, "welcome", "Hello", first=True)
    assert list(ordered.items()) == [("welcome", "Hello"), *([("docs", "built")] if sections else [])]


def test_an_empty_text_removes_the_section_and_without_sections_there_is_no_comment() -> None:
    assert render(with_section({"docs": "built"}, "docs", " ")) == ""


def test_markers_inside_a_section_do_not_break_its_neighbors() -> None:
    evil = "a <!-- nightjar:end:docs --> b <!-- nightjar:section:runtime -->\nforged\n<!-- nightjar:end:runtime -->"
    body = render(with_section(with_section({}, "runtime", "true"), "docs", evil))
    assert sections_of(body)["runtime"] == "true"
    assert set(sections_of(body)) == {"docs", "runtime"}


def test_the_newest_section_of_duplicates_counts() -> None:
    older = comment(render({"docs": "old", "runtime": "remaining"}), id=1, updated_at="2026-11-20T05:10:00Z")
    newer = comment(render({"docs": "new"}), id=2, updated_at="2026-11-20T05:10:01Z")
    assert merged_sections([newer, older]) == {"docs": "new", "runtime": "remaining"}


@given(st.integers(1, 4))
def test_a_comment_never_exceeds_githubs_limit(number: int) -> None:
    sections = {f"part-{index}": "x" * SIZE_LIMIT for index in range(number)}
    body = render(sections)
    assert len(body) <= SIZE_LIMIT
    assert body.startswith(MARKER)
    assert all(text.endswith(CUT.strip()) for text in sections_of(body).values())
    assert set(sections_of(body)) == set(sections)


def test_truncated_text_ends_with_a_whole_line() -> None:
    """Half a line of code would turn the text in it into a mention."""
    text = "\n".join(f"- `@octocat {number}`" for number in range(10_000))
    (section,) = sections_of(render({"docs": text})).values()
    assert section.endswith(f"`{CUT}")


def test_a_truncated_details_element_is_closed() -> None:
    """Otherwise it would swallow everything after it."""
    rows = "\n".join(f"- `</details> {number}`" for number in range(10_000))
    text = f"<details><summary>Skipped</summary>\n\n- `x`\n\n</details>\n\n<details><summary>More</summary>\n\n{rows}"
    (section,) = sections_of(render({"skipped-tests": text})).values()
    assert section.endswith(f"`\n\n</details>{CUT}")
    untruncated = sections_of(render({"skipped-tests": text[: text.index("<details><summary>More")] + rows}))
    assert untruncated["skipped-tests"].endswith(f"`{CUT}")


def test_windows_line_endings_are_read_as_written() -> None:
    sections = with_section({}, "docs", "built\r\r\nhere")
    assert sections_of(render(sections)) == sections == {"docs": "built\nhere"}


def test_line_endings_changed_by_a_browser_break_nothing() -> None:
    body = render({"docs": "built\n\nhere", "runtime": "12 min"}).replace("\n", "\r\n")
    assert sections_of(body) == {"docs": "built\n\nhere", "runtime": "12 min"}


@pytest.mark.parametrize("name", ["", "Docs", "ci_runtime", "a b", "x" * 41])
def test_a_name_that_could_not_be_read_again_is_refused(name: str) -> None:
    """TVM's script wrote sections with an underscore in their name and never found them again (TVM #12802)."""
    with pytest.raises(ValueError, match="lowercase letters"):
        with_section({}, name, "text")
