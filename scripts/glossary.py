"""Find words that the glossary replaces: `python scripts/glossary.py PATH…` lists each as file:line, word, replacement.

Reads Python (identifiers, comments, docstrings and strings), Markdown, HTML, YAML, TOML and the names of files.
docs/glossary.md has the words to use.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROSE = frozenset({".md", ".html", ".yaml", ".yml", ".toml", ".css"})
NOT_OURS = frozenset({".venv", ".venv-suite", "data", "mutants", "build", "node_modules", "__pycache__"})
"""Folders with other people's texts: reports of labs, payloads, licenses, packages."""
THIS = frozenset({"docs/glossary.md", "scripts/glossary.py", "tests/test_glossary.py"})
"""Files that name the old words in order to ban them."""


@dataclass(frozen=True)
class Rule:
    """What not to write, and what to write instead.

    `names` is searched in the words of an identifier, in lower case with spaces between them: `KeepAlive` is read as
    `keep alive`. `text` is searched in prose, and in the names of tests, which are sentences. Where `text` is empty,
    `names` is searched there too. `but` is what the word may be part of.
    """

    instead: str
    names: str
    text: str = ""
    but: str = ""


NO_NAME = r"(?!)"
"""Matches no identifier."""
_NIGHT_BY = r"(?:at|last|every|each|per)"
_RUNS = r"(?:(?:a|an|the|this|that|one|each|every|these|those|new|old|its|of|lab'?s?|other|in|up)\s+)*(?:lab\s+)?runs?"


_BRITISH = (
    r"colour|behaviour|favour|honour|neighbour|labell(?:ed|ing)|modell(?:ed|ing)|signall(?:ed|ing)|travell(?:ed|ing)|licence|"
    r"defence|offence|centre|grey|artefact|(?:recogn|organ|initial|normal|serial|optim|summar|synchron|author|categor|"
    r"priorit|minim|maxim|util|final|standard)is(?:e|ing|ation)"
)


def _phrase(instead: str, text: str) -> Rule:
    """Return a rule that applies to sentences only."""
    return Rule(instead, NO_NAME, f"(?i:{text})")


RULES = (
    Rule("pending merge (verb: want, ask for)", r"\bwish(es|ed)?\b"),
    Rule("message, notification, failure text, reason (verb: say, report, notify)", r"\b(told|telling)\b"),
    Rule(
        "say, report, notify",
        r"\btells?\b",
        r"\btells?\s+(?!(?:which|all|any|one|each|none|most|some)\s)(?:\w+\s+)?of\b",
    ),
    Rule("merge state", r"\bstanding\b", but=r"\blong[ -]standing\b"),
    Rule(
        "tracking branch (adjective: next, these; of a topic: subscriber)",
        r"\b(following|followers?)\b",
        r"\bfollowers?\b|\bfollowing\b",
        but=r"\bfollow(?:ing|ers) url\b|['\"/]follow(?:ing|ers)\b|\bthe following\b(?! branch)",
    ),
    Rule(
        "stored, retained; a stored record",
        r"\bkept\b",
        but=r"\bkept (?:open|alive|up to date|in sync|apart|separate)\b",
    ),
    Rule(
        "Ensure…, store, record",
        r"\bkeep(s|er|ing)?\b",
        r"(?<![A-Za-z])Keep[A-Z]\w*",
        but=r"\bkeep[ -]?alives?\b|\bkeep (?:blank values|params in input|going|trailing newline|open)\b|\bauto keep\b",
    ),
    Rule(
        "scan, refresh, check (verb in a name: scan, find, read)",
        r"\blook(s|ed|ing)?\b",
        r"\b(?:(?:a|the|one|two|three|each|every|any|no|another|its|both|all|many|few|more|these|those|of)\s+)?"
        r"(?:first|second|third|fourth|fifth|sixth|next|last|same|later|earlier|final|whole|other|closer|further)\s+looks?\b|"
        r"\b(?:a|the|one|each|every|any|no|another|its|this|that)\s+look\b(?!\s+(?:like|for|up|alike)\b)|"
        r"\b(?:two|three|both|all|many|few|more|of|between|the)\s+looks\b|\blooks\s+of\b",
        but=r"\blook[ -]?(?:up|around|ahead|behind)s?\b|\blooked up\b|\btake a look\b|\blook and feel\b",
    ),
    Rule(
        "run in a thread (elsewhere: apart from, except)",
        r"\baside\b",
        but=r"</?aside\b|[\n,] ?aside(?: [a-z.][\w.:-]*)? ?\{|\} aside [a-z.]+ \{",
    ),
    Rule(
        "redelivery, missing delivery",
        r"\bmissed\b",
        r"\b(?:what|which) (?:is|was|counts as) missed\b|\bthe missed\b",
        but=r"\bmissed (?:deliver(?:y|ies)|webhooks?|push(?:es)?|events?)\b",
    ),
    Rule("comment", r"\bremarks?\b"),
    Rule("accepts (elsewhere: matters to, is about)", r"\bconcerns\b", but=r"\bseparation of concerns\b"),
    Rule(
        "finish; `conclude` is the stage of a handler",
        r"^conclude (?!plan\b|stage\b)\w",
        r"(?<![A-Za-z])Conclude(?:[A-Z]\w*|\b(?=[(.]))|\beffects[./]conclude\b",
    ),
    Rule("admin", r"\bby ?hand\b", r"\bbyhand\b"),
    Rule(
        "Docker Hub",
        r"^(docker|image|images) registry\b",
        r"\bregistry\s+(?:of|for)\s+(?:Docker\s+)?images\b|\b(?:Docker|image|images')\s+registr(?:y|ies)\b",
    ),
    Rule(
        "transient",
        r"\bpassing\b(?! tests?\b| cases?\b| runs?\b)",
        r"\bpassing\s+(?:errors?|reasons?|faults?|troubles?|failures?|refusals?)\b|\bPASSING\b",
    ),
    Rule("typo, invalid command", r"\bslip(s|ped|ping)?\b"),
    Rule("canonical name", r"\b(spelling|spellings|spelled|spelt)\b"),
    Rule("removed", r"\bgone\b", but=r"\b410,? Gone\b|\b(?:HTTP|HTTP Status\.) ?GONE\b|\bHTTP ?Gone\b"),
    Rule(
        "removed, no longer", r"\bnot there any ?more\b|\bany more\b", r"\bnot there any ?more\b|\bto be so no more\b"
    ),
    Rule("recovered", r"\bwell again\b"),
    Rule("fix", r"\bmend(s|ed|ing)?\b"),
    Rule(
        "ingest",
        r"\btaking\b|\btakes? (?:the )?runs?\b|\btaken runs?\b|\bruns? taken\b",
        r"\b(?:take|takes|taking|took|taken)\s+" + _RUNS + r"\b(?!\s+(?:of|in a row|time))|"
        r"\bruns?\b(?:\s+(?:that|which|may|must|can|could|has|have|to|not|be|been|is|are|was|were))*\s+taken\b|"
        r"\btake\s+in\b",
        but=r"\btake[ns]?\s+(?:in|from|to|by|of)\s+runs?\b",
    ),
    Rule(
        "nightly run",
        r"\bnights?\b",
        "",
        but=rf"\b{_NIGHT_BY} night\b|\bnight-\d\b|\ba night(?=[.,;:)]|$)",
    ),
    Rule("scheduled, pending", r"\bdue\b", but=r"\bdue[\s#]+to\b|\bdue on\b"),
    # Phrases that readers have to read twice. These rules skip names: an identifier is not a sentence.
    _phrase("again; start over", r"\banew\b"),
    _phrase("subject, verb, object: who does it", r"\bwhom\b"),
    _phrase(
        "read, searched, checked (active: the bot reads)",
        r"\b(?:is|are|was|were|be|been|being) looked (?:at|for|into|through)\b",
    ),
    _phrase("say what failed: timed out, never arrived", r"\bin vain\b"),
    _phrase(
        "has no effect; no handler accepts it",
        r"\b(?:leads?|led|leading) to nothing\b|\b(?:delivery|deliveries|one|jobs?|it) that nobody wants\b|"
        r"\bnobody wants any more\b",
    ),
    _phrase("is notified of, receives, reads", r"\b(?:hears? of|heard of)\b"),
    _phrase("the result, the outcome, its jobs", r"\b(?:comes?|came) of (?:it|that|this|them|all|each|a|an|the)\b"),
    Rule("prefilter (of webhooks), listener, access", r"\bdoors?\b"),
    _phrase("no longer", r"\bany more\b(?! than\b)"),
    _phrase("newest first, oldest first", r"\bthe (?:newest|oldest) first\b"),
    _phrase("lower case, lowercase letters", r"\bsmall letters\b"),
    _phrase("last passed, last failed", r"\b(?:passed|failed) last\b(?! (?:week|month|year))"),
    _phrase("has failed since", r"\b(?:fails?|is (?:degraded|unreliable|failing|broken)) since\b"),
    _phrase(
        "has (no) usable results, is unusable",
        r"\b(?:says?|said|saying) (?:nothing|something|anything) about the code\b",
    ),
    _phrase("accepts requests", r"\b(?:takes?|taking) (?:no )?requests\b"),
    _phrase("device test", r"\btests? on devices\b"),
    _phrase("the outcome, how it ended; what happens to", r"\b(?:became|becomes?) of\b"),
    Rule(
        "subject, verb, object: we could not ask",
        NO_NAME,
        r"(?i:\b(?:could not|cannot) be asked\b)",
        but=r"\b(?:who|which) (?:could not|cannot) be asked\b",
    ),
    _phrase("available: (a list of valid values)", r"\b(?:known|declared) are\b|\bthere are: (?=\{)"),
    _phrase("has no, finds no", r"\bknows? no(?: |\b(?=such))(?!longer\b|more\b|one\b)"),
    _phrase("say about", r"\b(?:says?|said) of\b"),
    _phrase("is unavailable, is down", r"\b(?:is|are|was|were|been) away\b(?! from)"),
    _phrase("return whether, say whether", r"\btells? whether\b"),
    _phrase("created if missing", r"\bmade if need be\b"),
    _phrase("process", r"\bwork(?:s|ed|ing)? off\b"),
    _phrase("appears", r"\b(?:comes?|came) to be\b"),
    Rule(
        "American spelling, as in GitHub's documentation, which writes `cancelled` all the same",
        rf"\b(?:{_BRITISH})\w*",
        but=r"\baria-labelledby\b",
    ),
    Rule("trigger (of an error: advice, suggestion)", r"\bhint(s|ed|ing)?\b", but=r"\b(?:type|param) hints?\b"),
)

_SPACE = re.compile(r"(?<!\[) (?![?*])")


def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern in which a space also matches a line break, also one within a comment."""
    return re.compile(_SPACE.sub(r"[\\s#]+", pattern), flags)


_NAMES = tuple((rule, _compiled(rule.names)) for rule in RULES)
_TEXT = tuple((rule, _compiled(rule.text) if rule.text else _compiled(rule.names, re.IGNORECASE)) for rule in RULES)
_BUT = {rule: _compiled(rule.but, re.IGNORECASE) for rule in RULES if rule.but}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]*_[A-Za-z0-9_]*[A-Za-z0-9]|\b[A-Za-z]*[a-z0-9][A-Z]\w*")
_ANY = re.compile(
    "wish|told|tell|standing|follow|kept|keep|look|aside|miss|remark|concern|conclude|hand|registr|passing|slip|spel|gone|"
    "any ?more|to be so|again|mend|tak|took|night|due|hint|"
    r"anew|whom|vain|nothing|nobody wants|hear|(?:come|came)s?[\s#]+(?:of|to)|door|knows?[\s#]+no|"
    r"say|said|away|need be|work|(?:newest|oldest)[\s#]+first|small[\s#]+letters|ed[\s#]+last|since|requests|devices|"
    r"bec(?:ame|ome)s?[\s#]+of|be[\s#]+asked|(?:known|declared)[\s#]+are|there are:|"
    rf"{_BRITISH}",
    re.IGNORECASE,
)
"""A part of every old word. Most texts contain none, and need no further search."""
_ESCAPE = re.compile(r"\\[nrt]")
_ADDRESS = re.compile(r"https?://[^\s)>\"']+")


@dataclass(frozen=True, order=True)
class Hit:
    """One old word: its place, and what to write instead."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r} -> {self.instead}"


@cache
def in_name(name: str) -> tuple[tuple[str, str], ...]:
    """Return each old word in an identifier, with its replacement. The name of a test is treated as a sentence."""
    if not _ANY.search(name.replace("_", " ")):
        return ()
    words = _CAMEL.sub(" ", name).replace("_", " ").strip()
    if name.startswith("test_"):
        return tuple((word, instead) for _, word, instead in _in_words(words))
    words = words.lower()
    return tuple((name, rule.instead) for rule, pattern in _NAMES if pattern.search(_without(rule, words)))


def in_text(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line (from 0), the word and the replacement of each old word in prose. Addresses are skipped."""
    if not _ANY.search(text):
        return
    text = _ADDRESS.sub(lambda found: " " * len(found[0]), text)
    for found in _IDENTIFIER.finditer(text):
        for word, instead in in_name(found[0]):
            yield text.count("\n", 0, found.start()), word, instead
    yield from _in_words(_IDENTIFIER.sub(lambda found: " " * len(found[0]), text))


def _in_words(text: str) -> Iterator[tuple[int, str, str]]:
    for rule, pattern in _TEXT:
        allowed = _without(rule, text)
        for found in pattern.finditer(allowed):
            yield text.count("\n", 0, found.start()), " ".join(found[0].split()), rule.instead


def _without(rule: Rule, text: str) -> str:
    """Replace what the rule allows with blanks, so that line numbers don't change."""
    but = _BUT.get(rule)
    return but.sub(lambda found: re.sub(r"\S", ".", found[0]), text) if but else text


def in_python(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line (from 1), the word and the replacement of each old word in a module."""
    comment: list[str] = []
    begun = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            begun = begun if comment else line
            comment.append(token.string)
            continue
        if token.type == tokenize.NL and comment:
            continue
        yield from ((begun + at, word, instead) for at, word, instead in in_text("\n".join(comment)))
        comment = []
        if token.type == tokenize.NAME:
            yield from ((line, word, instead) for word, instead in in_name(token.string))
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield from ((line + at, word, instead) for at, word, instead in in_text(_ESCAPE.sub("  ", token.string)))


def in_file(path: Path) -> list[Hit]:
    """Return the old words in a file and in its name, by line."""
    name = str(path.resolve().relative_to(ROOT)) if path.resolve().is_relative_to(ROOT) else str(path)
    if name in THIS:
        return []
    hits = [Hit(name, 0, word, instead) for word, instead in in_name(path.stem.replace("-", "_").replace(".", "_"))]
    text = path.read_text(encoding="utf-8")
    found = (
        in_python(text) if path.suffix == ".py" else ((at + 1, word, instead) for at, word, instead in in_text(text))
    )
    return sorted({*hits, *(Hit(name, *one) for one in found)})


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files below some folders, without those of other people's texts."""
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            below = file.relative_to(path).parts
            if file.is_file() and not NOT_OURS & set(below) and file.suffix in PROSE | {".py"}:
                yield file


def main(arguments: Sequence[str]) -> int:
    """List the old words in files below some paths."""
    if not arguments:
        print("usage: python scripts/glossary.py PATH…")  # noqa: T201
        return 2
    hits = [hit for file in files(map(Path, arguments)) for hit in in_file(file)]
    for hit in hits:
        print(hit)  # noqa: T201
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
