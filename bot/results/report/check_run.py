"""What a hardware check run says: pure, from what is known to what GitHub is sent."""

from __future__ import annotations

from collections.abc import Iterator

from bot.github.check_runs import Action, Block, CheckContent, joined
from bot.github.markdown import code, fenced
from bot.results.report import sentences as words
from bot.results.report import tables
from bot.results.report.annotations import annotations_of
from bot.results.report.findings import Failure, Findings
from bot.results.report.reproduce import reproduce

RECHECK = Action("Re-check", "Compute this check once more", "re-check")
IGNORE = Action("Ignore for this PR", "Count these new failures as known", "ignore")

COMPARED = (
    "Compared with {commit}: the nearest earlier commit with complete results of this lab for the same target and "
    "suite."
)
COMPARED_BUT = "There are none of {suites}."
COMPARED_EACH = (
    "Each suite is compared with the nearest earlier commit that has complete results of this lab for the same "
    "target and suite; the table names it."
)
COMPARED_NONE = "There are no earlier complete results to compare with, so nothing can be called new or fixed."
MASS = (
    "So much failed at once in {suites} that one cause is likelier than many: look at the first failures, and at the "
    "lab, before the change."
)
IGNORED = "{failures} ignored for {pull} by {login} at {sha}: what fails anew is shown all the same."
CONTACTS = "Questions about this lab: {contacts} (not mentioned here, so nobody was notified)."
FAILURE_CHARACTERS = 3_000
MOST_CONTACTS = 10
MOST_TEXTS = 10


def report(findings: Findings) -> CheckContent:
    """Return what the check run of a target at a commit says; within GitHub's limits, whatever the lab sent."""
    conclusion, why = words.conclusion(findings)
    return CheckContent(
        conclusion=conclusion,
        title=words.title(findings),
        summary=joined(_summary(findings, why)),
        text=joined(_text(findings)),
        annotations=annotations_of(findings),
        actions=_actions(findings),
    )


def _summary(findings: Findings, why: str) -> Iterator[Block]:
    yield Block("the answer to a button", findings.notice)
    yield Block("why", f"{why} {words.ADVISORY}")
    yield Block("what it is compared with", _compared(findings))
    yield Block("what says nothing", words.infra_reasons(findings))
    yield Block("what is missing", words.lacking(findings))
    yield Block("what was ignored", _ignored(findings))
    yield Block("a warning", _mass(findings))
    yield Block("new failures", tables.new_failures(findings))
    yield Block("how to reproduce", reproduce(findings))
    yield Block("counts", tables.counts(findings))
    yield Block("the lab's contacts", _contacts(findings))


def _text(findings: Findings) -> Iterator[Block]:
    yield Block("failing tests", tables.unjudged(findings))
    yield Block("ignored failures", tables.ignored(findings))
    yield Block("tests that still fail", tables.still_failing(findings))
    yield Block("fixed tests", tables.changed(findings, "Fixed", "fixed"))
    yield Block("newly skipped tests", tables.changed(findings, "Newly skipped", "newly_skipped", message=True))
    yield Block("flaky tests", tables.changed(findings, "Flaky: failed, then passed", "flaky", message=True))
    yield Block("tests that are gone", tables.changed(findings, "Gone", "gone"))
    name = "Did not run, for their file or the whole run ended early"
    yield Block("tests that did not run", tables.changed(findings, name, "precluded"))
    yield Block("renamed tests", tables.renamed(findings))
    yield Block("runs", tables.runs(findings))
    for failure in findings.new_failures[:MOST_TEXTS]:
        yield Block("what new failures said", _said(failure))


def _compared(findings: Findings) -> str:
    baselines = {told.baseline for _, told in findings.telling if told.baseline}
    if len(baselines) > 1:
        return COMPARED_EACH
    if not baselines:
        return COMPARED_NONE if findings.telling else ""
    alone = [code(suite.suite) for suite, told in findings.telling if not told.baseline]
    compared = COMPARED.format(commit=tables.commit_link(baselines.pop()))
    return f"{compared} {COMPARED_BUT.format(suites=', '.join(alone[: words.MOST_LINES]))}" if alone else compared


def _ignored(findings: Findings) -> str:
    if findings.ignored is None or not findings.ignored_failures:
        return ""
    failures = words.counted(findings.ignored_failures, "new failure is", "new failures are")
    login, sha = code(findings.ignored.by), code(findings.ignored.sha[:10])
    return IGNORED.format(failures=failures, pull=words.pull_request(findings), login=login, sha=sha)


def _contacts(findings: Findings) -> str:
    if not findings.contacts:
        return ""
    return CONTACTS.format(contacts=", ".join(code(contact) for contact in findings.contacts[:MOST_CONTACTS]))


def _mass(findings: Findings) -> str:
    names = [code(suite.suite) for suite, told in findings.telling if told.comparison.mass]
    return MASS.format(suites=", ".join(names[: words.MOST_LINES])) if names else ""


def _said(failure: Failure) -> str:
    said = failure.detail.text.strip()
    text = "" if said == failure.seen.message.strip() else words.ending(said, FAILURE_CHARACTERS)
    return f"What {code(tables.middle_cut(failure.test, tables.SHOWN_ID))} said:\n\n{fenced(text)}" if text else ""


def _actions(findings: Findings) -> tuple[Action, ...]:
    can_ignore = findings.state.pull_request is not None and bool(findings.new_failures)
    return (RECHECK, IGNORE) if can_ignore else (RECHECK,)
