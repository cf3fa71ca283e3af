"""Find the line of a failure's text that says why a test failed.

Many tools state one message for every failure, such as `failed` or `exit=1`. If that was the cause, all failures of a
run would have one cause, and the run would count as a problem of the lab.
"""

from __future__ import annotations

from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import values

SEARCHED_LINES = 200
"""The most lines of a text that are searched."""
FEW_LINES = 4
"""A text of so many lines says why as a whole, such as what was expected and what came."""

_GENERIC = Pattern(
    r"(?:(?:a|the|this|\d+) )?(?:(?:sub)?tests?|test ?case|case|assertions?|check|command|process|script|step)? ?"
    r"(?:has |have )?(?:fail(?:ed|s|ure|ures)?|error(?:ed|s)?|not ok|broken|crashed|unsuccessful)[.!:]*"
    r"|\S+: (?:fail(?:ed)?|errors?)"
    r"|(?:exit(?:ed)?|return(?:ed)?)(?: with)?(?: ?(?:code|status|value))?[ =:]*-?\d+"
    r"|(?:[\w$]+[.:]+)*\w*(?:Error|Exception|Failure|Failed)[.!:]*",
    ignore_case=True,
)
_NOISE = Pattern(
    r"\W*$"  # blank lines and rules
    r"|(?:async )?at (?:.*[(/\\.:<]|async )"  # frames of JavaScript, Java and .NET
    r"|File \".*\", line \d+|Traceback \(most recent call last\)|stack(?: ?trace)?:"
    r"|note: run with|thread '.*' panicked|(?:RUN|OK|FAIL) {3,}\S"
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
_SAYS_WHY = Pattern(
    r"error|fail|assert|expect|panic|exception|unable|can(?:no|')t|could not|not found|no such|denied|timed? ?out|"
    r"invalid|mismatch|differ|wanted|missing|refused|fault|abort|killed|signal|wrong|bad |!=|does not|isn't|should",
    ignore_case=True,
)
_RAISED = Pattern(
    r"(?:[A-Za-z_]\w*\.)*[A-Z_a-z]\w*(?:Error|Exception|Exit|Interrupt|Failed|Warning)\b(?::|$)|AssertionError"
)


def is_summary(line: str) -> bool:
    """Say whether a line only counts tests, as the last lines of a report do; it explains no failure."""
    return _SUMMARY.fullmatch(line.strip()) is not None


def is_generic(message: str) -> bool:
    """Say whether a message fits every failure, so that it says nothing about this one."""
    return not message or _GENERIC.fullmatch(message.strip()) is not None


def message_or_reason(message: str, text: str) -> str:
    """Return a failure's message, or the line that says why of its text if the message is generic."""
    return (reason_line(text) or message) if is_generic(message) else message


def reason_of(text: str) -> str:
    """Return a text of few lines on one line, and of a longer one the line that says why."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return values.message(" ".join(lines)) if len(lines) <= FEW_LINES else reason_line(text)


def reason_line(text: str) -> str:
    """Return the line of a text that says why a test failed, "" if none does.

    It is what a traceback raised, else the first line with a word of failure that is no generic message, else the first
    line that is neither a frame of a stack, nor a summary, nor a rule, nor a generic message.
    """
    lines = [line.strip() for line in text.splitlines()[:SEARCHED_LINES]]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        raised = next((line for line in reversed(lines) if _RAISED.match(line) is not None), "")
        if raised and not is_generic(raised):
            return values.message(raised)
    candidates = [line for line in lines if line and _NOISE.match(line) is None and not is_summary(line)]
    specific = [line for line in candidates if not is_generic(line)]
    why = next((line for line in specific if _SAYS_WHY.search(line) is not None), "")
    return values.message(why or next(iter(specific), ""))
