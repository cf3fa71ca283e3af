r"""Find out what a failure says about its cause: its message, or a line of its text. No I/O.

Many tools write one message for all failures, such as "Failed", and the cause into the text:

    message: failure
    text:    ASSERTION FAILURE:
             - file   : timeout.cpp
             - message: check timeout_ok has failed

The cause of this failure is "check timeout_ok has failed".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from nightjar_formats.limits import MAX_MESSAGE
from nightjar_formats.patterns import SPACE, Pattern
from nightjar_formats.readers.fields import one_line

MAX_LINES = 25
"""The most lines of a text that are searched for its cause."""
LONGEST_LINE = 500
"""The most characters of a line that are searched."""
LONGEST_GENERIC = 120
"""The most characters of a message that may say nothing."""
FEW_LINES = 4
"""The most lines of a text that is a cause as a whole, such as the expected and the actual value."""
HEADING_LINES = 2
"""The most lines that are added to a line that only introduces them, such as "Expected equality of these values:"."""

_WORD = Pattern(r"[\p{L}\p{N}]+")
_GENERIC = frozenset(
    _WORD.findall("""
        a an and are assertion assertions at be below by case cases check checks cls code command completed
        condition conditions contains detail details did does done encountered end ended err error errored
        errors exception exceptions execution exit exited expectation expectations fail failed failing fails
        failure failures false fatal finished for framework got had has have in info information is item java
        junit kotlin lang log logs main message messages met method more ms no non none nonzero not null
        occurred of on one opentest4j or org out output outputs phase please process program python reason
        reported result results returned returning run runner running s script sec second seconds see spec specs
        stack stacktrace standard status std stderr stdout step steps subtest subtests such suite suites task
        tasks test testcase testcases testng tests that the there this thrown to trace traceback true type
        undefined unexpected unit unknown unsuccessful unsuccessfully untitled value was were with without
    """)
)
"""Words that name no cause, however they are joined."""
_COMPARISON = frozenset(
    {"actual", "but", "differ", "equal", "equality", "equals", "expected", "received", "these", "values"}
)
"""Words of messages that only compare values: many tests may fail with one such message for reasons of their own."""
_EXIT_STATUS = Pattern(r"\s*(?:exit|return)[ \w]*[ =:]+-?\d+\s*", ignore_case=True)
_COMPARES = Pattern(r"[=<>!]=|[≠≤≥]|=|->| [<>] ")
_LOCATION = (
    r"(?:File )?[\"'(]?(?:[A-Za-z]:)?[^\s:\"'()]*[^\s:\"'().]\.[A-Za-z]\w{0,9}[\"')]?"
    r"(?:[:(]\d+(?:[:,]\d+)?\)?|, line \d+| line \d+)"
)
_NO_CAUSE = Pattern(
    r"\s*(?:"
    r"[-*•>|\s]*(?:file|path|line|column|location|at|in|time|date|timestamp|started|duration|elapsed|host|hostname"
    r"|platform|seed|random seed|thread|pid|test|test ?case|test ?name|test ?suite|suite|class|function|method|name"
    r"|type|status|result|error trace)\s*[:=].*"  # a labeled fact about the test
    rf"|(?:at |in |\()*{_LOCATION}:?(?:,? in \S+)?\)?,?(?:\s*\(.*\))?"  # a place
    r"|at \S.*[:(]\d*\S*\)?|at \S+\(.*\)|from \S+:\d+.*|\(in test file .*\)"  # a frame
    r"|(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:FAIL|PASS|SKIP|BENCH):|FAIL\t|ok\s+\S+\t).*"  # Go
    r"|\[[ =\-A-Z]{8,12}\].*|Note: Google Test filter.*|Running main\(\) from.*"  # GoogleTest
    r"|(?:RUN|OK|FAIL) {3,}\S.*"  # kselftest
    r"|running \d+ tests?|test .+ \.\.\. \S+|note: run with .*|stack backtrace:|thread '.*panicked at .*:"  # Rust
    r"|Traceback \(most recent call last\):|During handling of the above exc.*|The above exception was.*"  # Python
    r")\s*",
    ignore_case=True,
)
_SUMMARY = Pattern(
    r"(?:# ?)*(?:(?:tests?|suites?|subtests?|assert(?:ion)?s?|pass(?:ed)?|fail(?:ed|ures?)?|skip(?:ped)?|todo|"
    r"cancell?ed|errors?|ok|total|files|planned|time|duration(?:_ms)?)[ :=]+\d[\d.,]*(?: ?m?s| ?sec(?:ond)?s?)?"
    r"|Looks like (?:you|your test) .*|You (?:failed|planned) \d.*|Tests were run but no plan was declared.*"
    r"|(?:failed|passed) \d+ (?:of|/) \d+ .*|\d+ ?(?:/|of) ?\d+ (?:\w+ )?(?:failed|passed|ok)\b.*"
    r"|\d+ (?:tests?|assertions?|specs?|examples?) (?:passed|failed|ok|run|skipped)\b.*"
    r"|all (?:\d+ )?(?:sub)?tests (?:passed|successful|ok)\b.*|(?:\S+: )?pass:\d+ .*|ok|done"
    r"|(?:not ok|ok) - \S+|No tests run!?)[ .!]*",
    ignore_case=True,
)
"""A line that only counts tests, as the last lines of a report do."""
_LABEL = Pattern(
    r"[-*•>\s]*(?:error |failure )?(?:message|msg|reason|details?|description)\s*[:=]\s*", ignore_case=True
)
_FAILS = Pattern(
    r"error|fail|assert|exception|expect|panic|abort|fatal|denied|timed? ?out|not found|no such|cannot|can't|could not"
    r"|unable|mismatch|wrong|invalid|missing|differ|refused|lost",
    ignore_case=True,
)
_PART_OF_WORD = rf"[^{SPACE}'\"`(),;<>/\\]"
_PATH = Pattern(rf"{_PART_OF_WORD}*[/\\](?:{_PART_OF_WORD}|[/\\])*")
_PLACE = Pattern(rf"(?:{_PART_OF_WORD}|[/\\])*\.[A-Za-z]\w{{0,4}}[:(]\d+(?:[:,]\d+)*\)?:?")
_NUMBER = Pattern(r"0x[0-9a-fA-F]+|\p{Nd}+")
_TRACEBACK = "Traceback (most recent call last)"
_PYTEST = "E  "
"""How pytest begins the lines of an exception."""


def says_nothing(message: str) -> bool:
    """Say whether a message has no word about the cause of a failure, such as "1 assertion(s) failed"."""
    if len(message) > LONGEST_GENERIC:
        return False
    if _EXIT_STATUS.fullmatch(message):
        return True
    if _COMPARES.search(message):
        return False
    words = _words(message)
    return all(map(_is_generic, words)) and not (words and all(map(str.isdecimal, words)))


def names_cause(message: str) -> bool:
    """Say whether tests that fail with this message may have a cause in common, more than that some values differ."""
    return len(message) > LONGEST_GENERIC or not all(
        word in _COMPARISON or _is_generic(word) for word in _words(message)
    )


def is_summary(line: str) -> bool:
    """Say whether a line only counts tests, as the last lines of a report do; it explains no failure."""
    return _SUMMARY.fullmatch(line.strip()) is not None


def cause(message: str, text: str, *, is_log: bool = False) -> str:
    """Return a failure's message, or the line of its text that says more than a message that says nothing."""
    return (cause_line(text, is_log=is_log) or message) if says_nothing(message) else message


def cause_of_text(text: str) -> str:
    """Return a text of few lines on one line, and of a longer one the line that says why."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return one_line(" ".join(lines)) if len(lines) <= FEW_LINES else cause_line(text, is_log=True)


def cause_line(text: str, *, is_log: bool = False) -> str:
    """Return the line of a failure's text that says why it failed, on one line; "" if there is none.

    That is the last line of Python's traceback, else the first line that is more than a place, a heading or a generic
    word. In a log it is the first such line with a word of failure, if there is one.
    """
    if _TRACEBACK in text and (exception := _last_exception(text)):
        return exception
    lines = text.splitlines()
    if _PYTEST in text and (exception := _pytest_exception(lines)):
        return exception
    failures = next(_cause_lines(_lines_of_failure(text)), "") if is_log else ""
    return failures or next(_cause_lines(lines), "")


def distinguishing_line(message: str, text: str) -> str:
    """Return the line of a failure's text that says something other than its message; "" if the text has the message.

    It distinguishes failures that have one message and different causes.
    """
    if not message or not text or message in text:
        return ""
    line = cause_line(text)
    if not line:
        return ""
    message, lowered = message.lower(), line.lower()
    says_the_same = message in lowered or lowered in message or message[: MAX_MESSAGE // 2] in text.lower()
    return "" if says_the_same else line


def failure_cause(message: str) -> str:
    """Remove what differs between failures of one cause: paths, places, node IDs, numbers, names of workers."""
    normalized = _NUMBER.sub("0", _PATH.sub("/", _PLACE.sub("/", message)))
    return message if says_nothing(normalized) else normalized


def _words(message: str) -> list[str]:
    return _WORD.findall(message.lower().replace("non-zero", "nonzero"))


def _is_generic(word: str) -> bool:
    return word in _GENERIC or word.isdecimal() or word.startswith("assert")


def _cause_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that may say why a test failed; a heading is joined with the lines that it introduces."""
    candidates = [line[:LONGEST_LINE] for line in islice(filter(_has_words, lines), MAX_LINES)]
    for number, line in enumerate(candidates):
        if says_nothing(line) or _NO_CAUSE.fullmatch(line) or is_summary(line):
            continue
        explanation = _unlabeled(line)
        if explanation.endswith(":"):
            following = candidates[number + 1 :][: 2 * HEADING_LINES]
            introduced = [line for line in following if not _NO_CAUSE.fullmatch(line)]
            explanation = " ".join((explanation, *map(_unlabeled, introduced[:HEADING_LINES])))
        if explanation:
            yield explanation


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line[:LONGEST_LINE]))


def _lines_of_failure(text: str) -> list[str]:
    """Return the first lines of a log that have a word of failure."""
    lines: list[str] = []
    end = 0
    for match in _FAILS.finditer(text):
        if match.start() >= end and len(lines) < MAX_LINES:
            end = (text.find("\n", match.end()) + 1) or len(text)
            lines.append(text[text.rfind("\n", 0, match.start()) + 1 : end])
    return lines


def _unlabeled(line: str) -> str:
    label = _LABEL.match(line)
    return one_line(line[label.end() :] if label else line)


def _last_exception(text: str) -> str:
    """Return the exception of the last traceback, or the line of code that raised it if the exception says nothing."""
    code = place = ""
    for line in text[text.rindex(_TRACEBACK) :].splitlines()[1:]:
        if line.strip() and not line[:1].isspace():
            return one_line(code if code and says_nothing(line) else line[:LONGEST_LINE])
        if line.lstrip().startswith("File "):
            place = line
        elif place and line.strip(" \t^~"):
            code, place = line[:LONGEST_LINE], ""
    return ""


def _pytest_exception(lines: Sequence[str]) -> str:
    """Return the exception of the last block of lines with E, or the line of code that raised it."""
    last = max((number for number, line in enumerate(lines) if line.startswith(_PYTEST)), default=-1)
    first = max(last, 0)
    while first and lines[first - 1].startswith("E"):
        first -= 1
    explanation = next(_cause_lines([line[1:] for line in lines[first : last + 1]]), "")
    code = next((line[1:] for line in reversed(lines[:first]) if line.startswith(">")), "")
    return explanation or one_line(code[:LONGEST_LINE])
