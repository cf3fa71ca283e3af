"""Read and write GitHub's Markdown: find a person's own words in a comment, and make untrusted text harmless."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from markdown_it import MarkdownIt
from markdown_it.parser_inline import RuleFuncInlineType
from markdown_it.rules_inline import StateInline, backtick, html_inline, image, link
from markdown_it.token import Token

from bot.core.patterns import LETTER_OR_DIGIT, SPACE, Pattern, PatternMatch
from bot.github.text.earlier_mail import earlier_mail

TEXT_LIMIT = 65_536
"""Characters that GitHub accepts in a comment or a body."""

HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Replaces a removed part in a line's text; no text from outside can contain it."""

ELLIPSIS = "…"
BREAK = "\N{ZERO WIDTH SPACE}"

_QUIET_BLOCKS = frozenset({"blockquote_open", "blockquote_close", "table_open", "table_close"})
_QUIET_SPANS = frozenset({"link_open", "link_close", "s_open", "s_close"})
_QUIET_HTML = Pattern(
    rf"<(/?)(blockquote|pre|code|tt|samp|kbd|del|s|strike|details|table)[{SPACE}/>]", ignore_case=True
)
_FOLDING = Pattern(rf"</?(?:details|summary)(?:[{SPACE}][^<>]*)?>", ignore_case=True)
_NESTING = 20
"""Deeper lists, quotes and brackets are not read. This bounds the cost, and nobody writes commands there."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a person's own words.

    `number` counts the lines of the comment from 1. `text` has no markup. Each HOLE in it stands for one of `holes`, in
    order: the text of inline code, or None for a link, an image or an escaped `@`. `in_earlier_mail`: the line is below
    the header of an earlier mail, so somebody else may have written it.
    """

    number: int
    text: str
    holes: tuple[str | None, ...] = ()
    in_earlier_mail: bool = False


def visible_lines(text: str, *, folded_away: bool = False, with_earlier_mail: bool = False) -> list[Line]:
    r"""Return the lines of a text that are a person's own words, as GitHub shows them.

    Paragraphs, list items and headings are speech (a `---` under a line makes it a heading by accident). Not speech:
    code, block quotes with their lazy continuations, tables, blocks of HTML and comments, text inside HTML that quotes,
    hides or strikes it out, and text struck out with `~~`. Inline code, links and images become a HOLE. So does an
    escaped `@` (`\@`, `&commat;`), because its author meant to mention nobody.

    `folded_away`: text in `<details>` is speech too. `with_earlier_mail`: return the text of an earlier mail too, which
    a reply by mail may include without the marks of a quotation (`bot.github.text.earlier_mail`).

    A text over TEXT_LIMIT cannot come from GitHub and has no lines: truncated, it could mean something else.
    Rules: https://github.github.com/gfm/
    """
    if len(text) > TEXT_LIMIT:
        return []
    reader = _Reader(folded_away=folded_away)
    quiet = 0
    for token in _PARSER.parse(text.replace(HOLE, "\N{REPLACEMENT CHARACTER}")):
        if token.type in _QUIET_BLOCKS:
            quiet += token.nesting
        elif token.type == "html_block" and token.map:
            html, comment, _ = _without_comments(token.content).partition("<!--")
            if not quiet:
                reader.html_block(html, first_line=token.map[0] + 1)
            if comment:
                break  # it was never closed, so GitHub hides everything after it
        elif token.type == "inline" and not quiet and token.map:
            reader.inline(token.children or (), first_line=token.map[0] + 1)
    mail = earlier_mail(text)
    lines = [replace(line, in_earlier_mail=line.number >= mail) for line in reader.lines]
    return [line for line in lines if with_earlier_mail or not line.in_earlier_mail]


def lines_alone(lines: Sequence[str]) -> list[Line]:
    """Read each line as a text of its own, so that no other line can hide it; `number` counts from 0.

    Pass only lines that begin a paragraph: with a mention, not with a space, a fence or a tag. All are parsed as one
    document, so the cost is linear.
    """
    visible: list[Line] = []
    for token in _PARSER.parse("\n\n".join(lines).replace(HOLE, "\N{REPLACEMENT CHARACTER}")):
        if token.type == "inline" and token.map:
            reader = _Reader()
            reader.inline(token.children or (), first_line=token.map[0] // 2)
            visible += reader.lines
    return visible


def outside_code(text: str) -> str:
    """Return the text that GitHub shows outside of code and links, where it searches for mentions.

    A HOLE replaces each part that is left out. A text over TEXT_LIMIT, which cannot come from GitHub, shows nothing.
    """
    if len(text) > TEXT_LIMIT:
        return ""
    pieces: list[str] = []
    quiet: Counter[str] = Counter()
    for token in _flat(_PARSER.parse(text.replace(HOLE, "\N{REPLACEMENT CHARACTER}"))):
        if token.type in ("html_block", "html_inline"):
            html, comment, _ = _without_comments(token.content).partition("<!--")
            pieces.append(_text_of_html(html, quiet))
            if comment and token.type == "html_block":
                break  # it was never closed
        elif token.type in ("link_open", "link_close"):
            quiet["link"] += token.nesting
        elif token.type in ("text", "text_special") and not any(quiet.values()):
            pieces.append(token.content)
        else:
            # The end of a line or a block, code and images end a word.
            pieces.append("\n" if token.type in ("softbreak", "hardbreak") or token.block else HOLE)
    return "".join(pieces)


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type == "inline":
            yield from token.children or ()
        else:
            yield token


_CODE_HTML = Pattern(rf"<(/?)(pre|code|tt|samp|kbd|script|style|a)(?:[{SPACE}/][^<>]*)?>", ignore_case=True)
_TAG = Pattern(r"<[^<>]*>")


def _text_of_html(html: str, quiet: Counter[str]) -> str:
    """Return the text of some HTML outside of code and links; updates `quiet`, the counts of open elements."""
    pieces, position = [], 0
    for match in _CODE_HTML.finditer(html):
        pieces.append(HOLE if any(quiet.values()) else html[position : match.start()])
        name, position = match[2].lower(), match.end()
        quiet[name] = max(0, quiet[name] + (-1 if match[1] else 1))
    pieces.append(HOLE if any(quiet.values()) else html[position:])
    return _TAG.sub(HOLE, "".join(pieces))


@dataclass(slots=True)
class _Reader:
    """Collects lines from the inline tokens of a document."""

    folded_away: bool = False
    lines: list[Line] = field(default_factory=list)
    _open_html: Counter[str] = field(default_factory=Counter)
    _text: list[str] = field(default_factory=list)
    _holes: list[str | None] = field(default_factory=list)

    def html(self, source: str) -> None:
        """Record which quoting elements are open after this HTML."""
        for match in _QUIET_HTML.finditer(source):
            name = match[2].lower()
            if name != "details" or not self.folded_away:
                self._open_html[name] = max(0, self._open_html[name] + (-1 if match[1] else 1))

    def html_block(self, source: str, first_line: int) -> None:
        """Read a block of HTML without its comments. Text without any HTML stood next to a comment, and is speech."""
        self.html(source)
        if self.folded_away:
            source = _FOLDING.sub("", source)
        if "<" not in source and not any(self._open_html.values()):
            lines = enumerate(source.split("\n"), start=first_line)
            self.lines += [Line(number, line.strip()) for number, line in lines if line.strip()]

    def inline(self, tokens: Sequence[Token], first_line: int) -> None:
        """Read one block's inline tokens."""
        number = next_number = first_line
        links = struck = 0
        for token in tokens:
            if token.type in ("softbreak", "hardbreak"):
                # Inside a link, the closing token counts all lines: the text of a link is one item, however long.
                if not links:
                    self._flush(number)
                    number = next_number = next_number + 1
                continue
            if token.type in _QUIET_SPANS:
                links += token.nesting if token.type.startswith("link") else 0
                struck += token.nesting if token.type.startswith("s_") else 0
            if not links:
                next_number += token.meta.get(_LINES, 0)
                self._take(token, quiet=struck > 0)
        self._flush(number)

    def _take(self, token: Token, *, quiet: bool) -> None:
        if token.type == "html_inline":
            self.html(_without_comments(token.content))
            self._text.append(" ")
        elif quiet or any(self._open_html.values()):
            if token.content.strip() and self._text[-1:] != [HOLE]:
                self._hole(None)
        elif token.type == "code_inline":
            self._hole(token.content)
        elif token.type in ("link_close", "image") or (token.type == "text_special" and "@" in token.content):
            self._hole(None)
        else:
            self._text.append(token.content.replace("\n", " "))

    def _hole(self, content: str | None) -> None:
        self._text.append(HOLE)
        self._holes.append(content)

    def _flush(self, number: int) -> None:
        text = "".join(self._text).strip()
        if text.strip(HOLE + " "):
            self.lines.append(Line(number, text, tuple(self._holes)))
        self._text.clear()
        self._holes.clear()


_COMMENT = Pattern(r"<!--(?:>|->|.*?-->)", dot_is_any=True)


def _without_comments(source: str) -> str:
    """Remove the closed comments from HTML, but not their line breaks."""
    last_end = source.rfind("-->") + len("-->")
    # Check that a comment ends: otherwise many unclosed ones would each be read to the end of the text.
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), source[:last_end]) + source[last_end:]


_LINES = "nightjar_lines"


def _counting_lines(rule: RuleFuncInlineType) -> RuleFuncInlineType:
    """Wrap a rule of the parser so that its last token has the number of line ends that it consumed.

    Tokens inside a paragraph have no positions of their own.
    """

    def counted(state: StateInline, silent: bool) -> bool:
        start = state.pos
        matched = rule(state, silent)
        if matched and not silent and (lines := state.src.count("\n", start, state.pos)):
            state.tokens[-1].meta[_LINES] = lines
        return matched

    return counted


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": _NESTING})
    parser.enable(["table", "strikethrough"])
    # Joined texts no longer show which characters were escaped.
    parser.disable("text_join")
    for name, rule in (("backticks", backtick), ("link", link), ("image", image), ("html_inline", html_inline)):
        parser.inline.ruler.at(name, _counting_lines(rule))
    return parser


_PARSER = _parser()

_ACTIVE = Pattern(r"@|#|gh-|:|www", ignore_case=True)
"""Beginnings of mentions, issues, URLs and emoji, which GitHub recognizes *after* it undoes Markdown's escapes."""
_EMOJI_FOLLOWS = Pattern(rf"[{LETTER_OR_DIGIT}_+-]+:")
_LONGEST_EMOJI = 41
"""Characters after a colon within which the closing colon of an emoji's name must be."""

_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "`*_[]~#$"}
    # Use entities: parsers differ about a backslash before a table's bar.
    | {"\\": "&#92;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "&": "&amp;", BREAK: "&#8203;"}
)
_AT_START = Pattern(r"^(?:([-+=:])|(\p{Nd}{1,9})([.)]))")
_BACK_TICKS = Pattern("`+")
_LINE_END = Pattern(r"\r\n|[\r\n\v\f\x85\x{2028}\x{2029}]")


def escape(text: str) -> str:
    """Return untrusted text as Markdown that shows it in one line and does nothing else.

    No mention, issue link, web address, HTML, emphasis, code, list, heading or table can result. Escapes alone do
    not stop mentions: GitHub looks for those in the finished page, so they are broken by a zero-width space, as
    Renovate and Dependabot do. Escape once, and `truncate` before: a cut could fall into an escape.
    """
    escaped = _AT_START.sub(_escape_start, _with_breaks(_one_line(text)).translate(_ESCAPES))
    # A final `!` would turn a link after it into an image: https://github.github.com/gfm/#images
    return f"{escaped[:-1]}\\!" if escaped.endswith("!") else escaped


def _with_breaks(line: str) -> str:
    """Insert a BREAK into every mention, issue link, URL and emoji."""
    return _ACTIVE.sub(
        lambda match: match[0] + BREAK * _is_active(line, match[0].lower(), match.start(), match.end()), line
    )


def _is_active(line: str, begins: str, start: int, end: int) -> bool:
    following = line[end : end + _LONGEST_EMOJI]
    match begins:
        case "#":
            return not following or following[0].isdecimal()
        case "gh-":
            return following[:1].isdecimal() and not (start and (line[start - 1].isalnum() or line[start - 1] == "_"))
        case "www":
            return following.startswith(".")
        case ":":
            return following.startswith("//") or _EMOJI_FOLLOWS.match(following) is not None
        case _:
            return True


def _escape_start(match: PatternMatch) -> str:
    return f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}"


def code(text: str) -> str:
    """Return untrusted text as inline code, in one line: GitHub links and mentions nothing in code.

    A longer fence preserves back-ticks. A `|` would end a table's cell even in code, so such text becomes `<code>`.
    """
    line = _one_line(text)
    if not line or "|" in line:
        return f"<code>{escape(line)}</code>"
    fence = _fence_around(line)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def _fence_around(text: str) -> str:
    """Return more back-ticks than the text has in a row."""
    runs = _BACK_TICKS.findall(text) if "`" in text else ()
    return "`" * (1 + max(map(len, runs), default=0))


def fenced(text: str) -> str:
    """Return untrusted text as a code block, in a fence that nothing in the text can close."""
    content = lines_of(text)
    fence = _fence_around(content).rjust(3, "`")
    return f"{fence}text\n{content}\n{fence}"


def lines_of(text: str) -> str:
    """Return untrusted text without invisible characters that change how it reads; line ends and tabs stay."""
    lines = _LINE_END.split(text)
    return "\n".join("".join(c if c == "\t" else _visible(c) for c in line) for line in lines)


def plain(text: str) -> str:
    """Return untrusted text in one line, for places where GitHub does not render Markdown, such as a check run's title.

    GitHub does not document that it ignores mentions and URLs there, so they are broken up as in `escape`.
    """
    return _with_breaks(_one_line(text))


def truncate(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text, ending in `…` if something was cut off."""
    if len(text) <= limit:
        return text
    return (text[: max(0, limit - 1)].rstrip() + ELLIPSIS)[:limit]


def _one_line(text: str) -> str:
    """Join lines and drop invisible characters that change the visible text: control and text direction characters."""
    if text.isprintable() and HOLE not in text:  # below, only runs of spaces would change
        return " ".join(text.split())
    visible = "".join(_visible(character) for character in text.replace(HOLE, "\N{REPLACEMENT CHARACTER}"))
    return " ".join(visible.split())


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category == "Cs":  # a lone surrogate: GitHub accepts only UTF-8
        return "\N{REPLACEMENT CHARACTER}"
    changes_direction = unicodedata.bidirectional(character) in _DIRECTIONS
    return "" if category == "Cc" or changes_direction else character


_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
"""Control characters that change the order in which text is displayed (https://www.unicode.org/reports/tr9/)."""
