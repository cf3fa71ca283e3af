"""Write a merge commit's message: the pull request's title and text, without parts that are useless in a history. Pure.

It removes HTML comments, the text of the repository's template, directives that make a CI skip the commit, and the `@`
of mentions: GitHub notifies people about each commit that mentions them, in every fork. Except for the directives, code
stays unchanged: fenced, indented and inline, and decorators such as `@T.prim_func` anywhere, because no account can
have such a name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from bot.core.patterns import SPACE, Pattern, PatternMatch
from bot.github.text.skip_directives import without_directives

if TYPE_CHECKING:
    from bot.core.events import Person

TRAILER = "Co-authored-by: {name} <{email}>"

TEXT, CODE, COMMENT = "text", "code", "comment"

# Parse only blocks: the parser gives no positions inside them, so this module reads their content itself.
_PARSER = MarkdownIt("commonmark", {"html": True, "maxNesting": 20}).disable(["inline", "text_join"])
_BLOCKS = frozenset({"fence", "code_block", "html_block", "inline"})
_MARK = Pattern(r"\\|`+|<!--")
_TICKED = frozenset({"[x]", "[X]"})
_ENDS = f"(?:[{SPACE}]|$)"
_BEGINS_UNIT = Pattern(rf"[{SPACE}]*(?:#{{1,6}}|[-*+]|\d{{1,9}}[.)]){_ENDS}")
_CO_AUTHOR = Pattern(
    rf"^co-authored-by:[ \t]*(?P<name>[^<>\n]*?)[ \t]*<(?P<email>[^<>{SPACE}]+)>[ \t]*$", ignore_case=True, by_line=True
)
_ANY_TRAILER = Pattern("[A-Za-z0-9][A-Za-z0-9-]*: .*")
# At most 18 digits: such a number fits into 64 bits.
_NO_REPLY = Pattern(
    r"(?:(?P<id>[0-9]{1,18})\+)?(?P<login>[^@]+)@users\.noreply\.github\.com", ignore_case=True, dot_is_any=True
)

_AT_OR_ADDRESS = Pattern(r"(?P<address>https?://[^\s\v]+)|\\?@")
_LOGIN = Pattern("[A-Za-z0-9](?:-?[A-Za-z0-9])*(?:_[A-Za-z0-9]{3,8})?")
_PART_OF_WORD = Pattern(r"[\w@/]")
_NAME_GOES_ON = Pattern(r"[\w@]|\.\w")
_STEPS_A_WORD, _LEAST_STEPS = 20, 1_000
"""The most comparisons with a template's words: for each word of a text, and in addition for any text.

Above the limit, the rest of the text stays as it is. Ordinary texts need one or two per word, because they differ from
a template within a few words; `a a a …` would take quadratic time.
"""
_CUT_MARKS = ("…", "...")
_LONGEST_LOGIN = 100
"""Characters; no account has a longer name: https://docs.github.com/en/rest/users/users"""


@dataclass(frozen=True, slots=True)
class AuthoredCommit:
    """A commit of a pull request with its author; `author_id` is 0 without a GitHub account.

    `is_merge`: it has several parents, as when somebody updates the branch with its base.
    """

    author_id: int
    name: str
    email: str
    message: str
    is_merge: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    code: bool


def rejoined(title: str, body: str) -> tuple[str, str]:
    """Return a pull request's title and text; if GitHub cut the title, its end moves from the text to the title.

    GitHub proposes the message of a commit as title and text. It cuts a long first line, even inside a word:
    `Update it to the v…` is the title, and the text begins with `…ectorized schedule`.
    """
    start = title.rstrip()
    first, _, remaining_text = _plain_ends(body).lstrip().partition("\n")
    for mark in _CUT_MARKS:
        if start.endswith(mark) and first.startswith(mark) and (end := first.removeprefix(mark).rstrip()):
            return start.removesuffix(mark) + end, remaining_text
    return title, body


def title(text: str, number: int) -> str:
    """Return the first line of the commit: the pull request's title and number."""
    ending = f"(#{number})"
    title = " ".join(without_directives(_without_mentions(_scan(" ".join(text.split())))).split())
    return title if title.endswith(ending) else f"{title} {ending}".strip()


def message(body: str, templates: Iterable[str], commits: Sequence[AuthoredCommit], author: Person) -> str:
    """Return everything below the first line: the text, then the co-authors."""
    text, named = _without_trailers(without_template(body, templates))
    text = _tidy(without_directives(text))
    credited = without_directives("\n".join(co_authors(commits, named, author)))
    if not credited or not text:
        return text or credited
    last = text.rpartition("\n\n")[2].splitlines()
    # Trailers must be one block, or git ignores all but the last: https://git-scm.com/docs/git-interpret-trailers
    return f"{text}\n{credited}" if all(map(_ANY_TRAILER.fullmatch, last)) else f"{text}\n\n{credited}"


def without_template(body: str, templates: Iterable[str]) -> str:
    """Return a pull request's text without comments, template and mentions; no two lines in a row are blank."""
    lines = _lines(_without_comments(body))
    for template in templates:
        lines = _without_units(lines, list(_units(_lines(_without_comments(template)))))
    return _without_mentions(_pieces(_tidy("\n".join(line.text for line in lines))))


def co_authors(commits: Sequence[AuthoredCommit], named: Iterable[tuple[str, str]], author: Person) -> list[str]:
    """Return a trailer for everybody but the author, in the order of their first mention in the commits, then the text.

    `named` has the names and addresses that the text credits. An address counts once, regardless of case. A merge
    credits nobody: a person who updates a branch with its base has not written the merged changes.
    """
    author_emails = {
        commit.email.casefold() for commit in commits if commit.author_id and commit.author_id == author.id
    }
    authored = [commit for commit in commits if not commit.is_merge]
    credited = [pair for commit in authored for pair in ((commit.name, commit.email), *_credited(commit.message))]
    people: dict[str, str] = {}
    for name, email in [*credited, *named]:
        if email and email.casefold() not in author_emails and not _is_address_of(email, author):
            people.setdefault(email.casefold(), TRAILER.format(name=_one_line(name), email=_one_line(email)))
    return list(people.values())


def _credited(text: str) -> list[tuple[str, str]]:
    return [(match["name"], match["email"]) for match in _CO_AUTHOR.finditer(_plain_ends(text))]


def _is_address_of(email: str, author: Person) -> bool:
    """Return whether an address is the one that GitHub made for an account, by its ID if the address has one.

    https://docs.github.com/en/account-and-profile/reference/email-addresses-reference#your-noreply-email-address
    """
    match = _NO_REPLY.fullmatch(email)
    if match is None:
        return False
    return int(match["id"]) == author.id if match["id"] else match["login"].casefold() == author.login.casefold()


def _without_trailers(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Split off the lines of a text that credit people: they go to the end of the message."""
    lines = _lines(text)
    named = [pair for line in lines if not line.code for pair in _credited(line.text)]
    other_lines = [line.text for line in lines if line.code or not _CO_AUTHOR.fullmatch(line.text)]
    return _tidy("\n".join(other_lines)), named


def _tidy(text: str) -> str:
    """Strip blank lines at both ends, and reduce several in a row to one; those in code stay."""
    lines = _lines(text)
    lines_left = [
        line for n, line in enumerate(lines) if line.text.strip() or line.code or (n and lines[n - 1].text.strip())
    ]
    return "\n".join(line.text for line in lines_left).rstrip()


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _one_line(text: str) -> str:
    return " ".join(text.replace("<", "").replace(">", "").split())


# Templates


def _lines(text: str) -> list[_Line]:
    """Return the lines of a text, and which of them are blocks of code."""
    code = set[int]()
    for token in _PARSER.parse(text):
        if token.type in ("fence", "code_block") and token.map:
            code.update(range(*token.map))
    return [_Line(line, number in code) for number, line in enumerate(text.split("\n"))]


def _words(line: _Line) -> list[str]:
    """Return a line's words; a ticked box counts as an empty one."""
    if line.code:
        return line.text.split()
    return ["[" if word in _TICKED else word for word in line.text.replace("[ ]", "[").split()]


def _units(lines: Sequence[_Line]) -> Iterator[tuple[list[str], bool]]:
    """Yield the units of a template that people keep or replace as a whole: paragraphs, headings, list items, code."""
    unit: list[str] = []
    code = heading = False
    for line in [*lines, _Line("", code=False)]:
        words = _words(line)
        begins = not line.code and (not words or bool(_BEGINS_UNIT.match(line.text)))
        if unit and (begins or heading or line.code != code):
            yield unit, code
            unit = []
        unit += words
        code, heading = line.code, not line.code and line.text.lstrip().startswith("#")


class _TemplateNode(dict[str, "_TemplateNode"]):
    """A node of the tree of a template's units: the words that may come next; `ends`: a unit may end here."""

    ends = False


def _without_units(lines: Sequence[_Line], units: Iterable[tuple[list[str], bool]]) -> list[_Line]:
    """Return the lines without those of a template, however they are wrapped and indented."""
    roots = {False: _TemplateNode(), True: _TemplateNode()}
    for words, code in units:
        node = roots[code]
        for word in words:
            node = node.setdefault(word, _TemplateNode())
        node.ends = True
    lines_left: list[_Line] = []
    words_of = [_words(line) for line in lines]
    steps_left = _LEAST_STEPS + _STEPS_A_WORD * sum(map(len, words_of))
    index = 0
    while index < len(lines):
        end, compared = _end_of(lines, words_of, index, roots[lines[index].code]) if steps_left > 0 else (None, 0)
        steps_left -= compared
        if end is None:
            lines_left.append(lines[index])
        index = end or index + 1
    return lines_left


def _end_of(
    lines: Sequence[_Line], words_of: Sequence[Sequence[str]], start: int, node: _TemplateNode
) -> tuple[int | None, int]:
    """Return the line after the longest unit that begins at `start` and ends at the end of a line; None for no unit.

    The second value is the number of compared words.
    """
    end, compared = None, 0
    for number in range(start, len(lines)):
        words, code = words_of[number], lines[number].code
        if code != lines[start].code or not (words or (code and number > start)):
            break
        for word in words:
            compared += 1
            if (next_node := node.get(word)) is None:
                return end, compared
            node = next_node
        if node.ends and words:
            end = number + 1
    return end, compared


# Pieces of text, code and comments


def _without_comments(text: str) -> str:
    """Remove HTML comments, except in code, where GitHub shows them."""
    return "".join(piece for piece, kind in _pieces(_plain_ends(text)) if kind != COMMENT)


def _without_mentions(pieces: Iterable[tuple[str, str]]) -> str:
    return "".join(_unmentioned(piece) if kind == TEXT else piece for piece, kind in pieces)


def _unmentioned(text: str) -> str:
    """Remove the `@` of each mention, as GitHub reads them; leave addresses unchanged."""

    def replaced(match: PatternMatch) -> str:
        name = text[match.end() : match.end() + _LONGEST_LOGIN]
        login = None if match["address"] else _LOGIN.match(name)
        if login is None or _NAME_GOES_ON.match(name[login.end() :]):
            return match[0]
        if not _PART_OF_WORD.match(text[max(0, match.start() - 1) : match.start()]):
            return ""
        return "\\" if match[0] == "\\@" else match[0]

    return _AT_OR_ADDRESS.sub(replaced, text)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text in pieces: `TEXT`, `CODE` or `COMMENT`."""
    # `splitlines` would split at more characters than Markdown does.
    *ended, last = text.split("\n")
    lines = [*(f"{line}\n" for line in ended), last]
    next_line = 0
    for token in _PARSER.parse(text):
        if token.type not in _BLOCKS or not token.map or token.map[0] < next_line:
            continue
        start, end = token.map
        for line in lines[next_line:start]:
            yield from _scan(line)
        block, next_line = "".join(lines[start:end]), end
        if token.type == "inline":
            yield from _scan(block)
        elif token.type == "html_block":
            # An unclosed comment hides everything up to the end of the text, so the rest is one block.
            yield from _scan(block, unclosed_hides=True)
        else:
            yield block, CODE
    for line in lines[next_line:]:
        yield from _scan(line)


def _scan(block: str, *, unclosed_hides: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the pieces of one block. Of a code span and a comment that overlap, the one that begins first counts.

    https://spec.commonmark.org/0.31.2/#code-spans, https://spec.commonmark.org/0.31.2/#html-comment
    """
    marks = list(_MARK.finditer(block))
    # Group runs by length: a run closes only a span of its own length. Bisection finds each, so the cost stays near
    # linear.
    runs: dict[int, list[int]] = defaultdict(list)
    for mark in marks:
        if mark[0][0] == "`":
            runs[len(mark[0])].append(mark.start())
    begin = position = 0
    last_end = block.rfind("-->")
    for mark in marks:
        start = max(mark.start(), position)
        if start >= mark.end():
            continue  # part of a piece that was already read
        position = mark.end()
        kind, end = TEXT, None
        if mark[0] == "\\":
            position += 1
        elif mark[0] == "<!--" and start > mark.start():
            continue  # escaped
        # Check that the comment ends: otherwise many unclosed ones would each be read to the end of the block.
        elif mark[0] == "<!--" and start + 2 <= last_end:
            kind, end = COMMENT, block.index("-->", start + 2) + len("-->")  # `<!-->` is a complete comment
        elif mark[0] == "<!--" and unclosed_hides:
            kind, end = COMMENT, len(block)
        elif mark[0] != "<!--" and not unclosed_hides:
            kind, end = CODE, _closing(runs[position - start], position, position - start)
        if end is not None:
            yield block[begin:start], TEXT
            yield block[start:end], kind
            begin = position = end
    yield block[begin:], TEXT


def _closing(runs: Sequence[int], behind: int, length: int) -> int | None:
    """Return the end of the first run of back-ticks after a position; `runs` all have the same length."""
    index = bisect_left(runs, behind)
    return runs[index] + length if index < len(runs) else None
