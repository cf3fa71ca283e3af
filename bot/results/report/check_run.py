"""Write a hardware check run: from findings to the content for GitHub. Pure.

Failures come first, then the reason of the conclusion; boilerplate comes last.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.core.listing import listed
from bot.github.check_runs import Action, Block, CheckContent, joined_blocks
from bot.github.text.markdown import code, fenced
from bot.results.report import sentences, tables, texts
from bot.results.report.annotations import annotations_of
from bot.results.report.findings import Findings, NewFailure
from bot.results.report.reproduce import reproduce

RECHECK = Action(texts.RECHECK_LABEL, texts.RECHECK_DESCRIPTION, "re-check")
IGNORE = Action(texts.IGNORE_LABEL, texts.IGNORE_DESCRIPTION, "ignore")

FAILURE_CHARACTERS = 3_000
MOST_CONTACTS = 10
MOST_TEXTS = 10


def results_report(findings: Findings) -> CheckContent:
    """Return the content of a target's check run on a commit, within GitHub's limits for any input."""
    conclusion, reason = sentences.conclusion(findings)
    return CheckContent(
        conclusion=conclusion,
        title=sentences.title(findings),
        summary=joined_blocks(_summary(findings, reason)),
        text=joined_blocks(_text(findings)),
        annotations=annotations_of(findings),
        actions=_actions(findings),
    )


def _summary(findings: Findings, reason: str) -> Iterator[Block]:
    yield Block("the answer to a button", findings.notice)
    yield Block("that the target is degraded", findings.degraded)
    yield Block("unreliable results", sentences.unreliable(findings))
    yield Block("a warning", _mass_warning(findings))
    yield Block("new failures", tables.new_failures(findings))
    yield Block("differences between simulator and device", sentences.paired_differences(findings))
    yield Block("known flaky tests", tables.known_flaky(findings))
    yield Block("failing tests", tables.unjudged(findings))
    yield Block("quarantined tests", tables.quarantined(findings))
    yield Block("tests whose quarantine has ended", tables.quarantine_ended(findings))
    yield Block("measurements", tables.measurements(findings))
    yield Block("how to reproduce", reproduce(findings))
    yield Block("why", reason)
    yield Block("unusable suites", sentences.unusable_suites(findings))
    yield Block("what is missing", sentences.incomplete(findings))
    yield Block("what was ignored", _ignored(findings))
    yield Block("what it is compared with", _compared(findings))
    yield Block("counts", tables.counts(findings))
    yield Block("what was repaired", sentences.repaired(findings))
    yield Block("the lab's contacts", _contacts(findings))
    yield Block("what advisory means", texts.ADVISORY)


def _text(findings: Findings) -> Iterator[Block]:
    yield Block("ignored failures", tables.ignored(findings))
    yield Block("tests that still fail", tables.still_failing(findings))
    yield Block("fixed tests", tables.changed(findings, texts.FIXED, "fixed"))
    yield Block("newly skipped tests", tables.changed(findings, texts.NEWLY_SKIPPED, "newly_skipped", message=True))
    yield Block("flaky tests", tables.changed(findings, texts.FLAKY, "flaky", message=True))
    yield Block("removed tests", tables.changed(findings, texts.REMOVED, "removed"))
    yield Block("tests that did not run", tables.changed(findings, texts.PRECLUDED, "precluded"))
    yield Block("renamed tests", tables.renamed(findings))
    yield Block("runs", tables.runs(findings))
    for failure in findings.new_failures[:MOST_TEXTS]:
        yield Block("output of new failures", _output(failure))


def _compared(findings: Findings) -> str:
    baselines = {compared.baseline for _, compared in findings.reported if compared.baseline}
    if len(baselines) > 1:
        return texts.COMPARED_EACH
    if not baselines:
        return texts.COMPARED_NONE if findings.reported else ""
    without_baseline = [code(suite.suite) for suite, compared in findings.reported if not compared.baseline]
    sentence = texts.COMPARED.format(commit=tables.commit_link(baselines.pop()))
    return (
        f"{sentence} {texts.COMPARED_BUT.format(suites=listed(without_baseline, sentences.MOST_LINES))}"
        if without_baseline
        else sentence
    )


def _ignored(findings: Findings) -> str:
    if findings.ignored is None or not findings.ignored_failures:
        return ""
    failures = texts.counted(findings.ignored_failures, "new failure is", "new failures are")
    login, sha = code(findings.ignored.by), code(findings.ignored.sha[:10])
    return texts.IGNORED.format(failures=failures, pull=sentences.pull_request(findings), login=login, sha=sha)


def _contacts(findings: Findings) -> str:
    if not findings.contacts:
        return ""
    return texts.CONTACTS.format(contacts=", ".join(code(contact) for contact in findings.contacts[:MOST_CONTACTS]))


def _mass_warning(findings: Findings) -> str:
    names = [code(suite.suite) for suite, compared in findings.reported if compared.comparison.mass]
    return texts.MASS.format(suites=listed(names, sentences.MOST_LINES)) if names else ""


def _output(failure: NewFailure) -> str:
    output = failure.detail.text.strip()
    if not output or output == failure.seen.message.strip():
        return ""
    test = code(tables.middle_cut(failure.test, tables.SHOWN_ID))
    text = fenced(texts.output_end(output, FAILURE_CHARACTERS))
    return f"{texts.OUTPUT_OF.format(test=test)}\n\n{text}" if text else ""


def _actions(findings: Findings) -> tuple[Action, ...]:
    can_ignore = findings.state.pull_request is not None and bool(findings.new_failures)
    return (RECHECK, IGNORE) if can_ignore else (RECHECK,)
