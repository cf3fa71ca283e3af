"""Texts about drafts that revert the culprit of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.listing import listed
from bot.core.urls import linkable
from bot.effects.reverts import marker_of, reverts_line
from bot.github.text.markdown import code
from handlers.searches.records import CulpritSearch, SearchRunState
from handlers.searches.revert.records import CulpritRevert, RevertStage
from handlers.searches.texts import FAIL, MOST_NAMED_TESTS, MOST_PROBABILITY, SHORT, STATES, failed_of

if TYPE_CHECKING:
    from collections.abc import Callable

# The audit log
CHECKS = "the revert of search {id} is looked at"
STORED = "the revert of search {id} is stored: {stage}"
NO_BASE = "there is no branch {base}"
CONFLICTS = "{branch} cannot be reverted"
BRANCH_REMOVED = "somebody deleted {branch} meanwhile"
HEAD_MADE = "{branch} is at {sha}"
HEAD_REMOVED = "{branch} deleted"
NO_HEAD = "there is no {branch}"
DRAFT_SAME = "#{number} is up to date"
DRAFT_CORRECTED = "corrected #{number}"
NOT_NAMED = "search {id} names no pull request that is to be reverted"
STAGE = "the revert of search {id} is {stage}"
NO_COMMIT_BEFORE = "there is no commit before {sha}"
REASON = "the tests without #{pull}, which search {id} names"
TESTS_ENDED = "tests without the culprit of search {id} have ended"

# The commits
EMAIL = "{id}+{login}@users.noreply.github.com"
MESSAGE = "Revert #{pull}\n\nThis reverts {sha}, to run tests without it."

# The draft
SINCE = "Since #{pull}, {tests} on {targets}, with a probability of {probability:.1%}."
PASSES = "I reverted it upon {tip}, the head of {base} then, and ran the tests at that commit, {head}. They pass:"
TABLE = "| target | at {culprit}, with #{pull} | at {head}, without it | log |\n| --- | --- | --- | --- |"
ROW = "| {target} | {before} | {after} | {log} |"
LOG = "[log]({url})"
PAGE = "[The search, step by step]({url})"
NEVER_MERGED = (
    "Somebody who knows the code decides what becomes of this draft. I merge it only if a person requests that."
)
START, OURS, END = "<!-- nightjar:notice -->", "<!-- nightjar:closed -->", "<!-- /nightjar:notice -->"
NOTICE = "**Closed.** {reason}"
SEARCHES_AGAIN = "Late results contradict the search that named #{pull}, so it runs again."
CORRECTED = "The search no longer names #{pull}: {answer}"
FAILS_WITHOUT = "Late results say that the tests fail without #{pull} too."

# The issue
HEADING = "### A draft that reverts it"
SENTENCES = {
    RevertStage.WAITING: (
        "The tests are to run without #{pull}, once a device is idle. If they pass, I open a draft that reverts it."
    ),
    RevertStage.TESTING: ("The tests run without #{pull}, at {head}. If they pass, I open a draft that reverts it."),
    RevertStage.OPENED: "#{number} is a draft that reverts #{pull}: without it, the tests pass on {targets}.",
    RevertStage.FAILED: "No draft: without #{pull}, at {head}, the tests still fail on {targets}.",
    RevertStage.UNKNOWN: "No draft: no device ran the tests without #{pull}.",
    RevertStage.CONFLICT: "No draft: #{pull} cannot be reverted upon {tip}: later commits changed the same lines.",
    RevertStage.NOTHING: "No draft: {base} no longer has the change of #{pull}.",
    RevertStage.EXISTS: "No draft: #{number} reverts #{pull}, or was to.",
    RevertStage.REFUSED: "No draft: {reason}",
    RevertStage.WITHDRAWN: "No draft: the search no longer names #{pull}.",
}
FAILED_WITH_DRAFT = "#{number} is closed: without #{pull}, at {head}, the tests still fail on {targets}."
WITHDRAWN_WITH_DRAFT = "#{number}, which was to revert #{pull}, is closed: the search no longer names #{pull}."


def revert_sentence(revert: CulpritRevert, quoted: Callable[[str], str] = code) -> str:
    """Return how far a revert is (Markdown, or plain text if `quoted` leaves names as they are)."""
    text = SENTENCES[revert.stage]
    if revert.number and revert.is_own:
        text = {RevertStage.FAILED: FAILED_WITH_DRAFT, RevertStage.WITHDRAWN: WITHDRAWN_WITH_DRAFT}.get(
            revert.stage, text
        )
    counted_runs = [run for run in revert.runs if run.state is SearchRunState.RESULTS]
    is_failed = revert.stage is RevertStage.FAILED
    targets = [run.target for run in counted_runs if not is_failed or any(failed for failed, _ in run.counts.values())]
    return text.format(
        pull=revert.pull,
        number=revert.number,
        base=quoted(revert.base),
        tip=quoted(revert.tip[:SHORT]),
        head=quoted(revert.head[:SHORT]),
        targets=listed([quoted(target) for target in dict.fromkeys(targets)], MOST_NAMED_TESTS),
        reason=revert.reason,
    )


def revert_section(revert: CulpritRevert) -> str:
    """Return the section of the issue about a revert (Markdown)."""
    return f"{HEADING}\n\n{revert_sentence(revert)}"


def draft_body(search: CulpritSearch, revert: CulpritRevert, repository: str, url: str) -> str:
    """Return the description of the draft (Markdown); `url` is the page of the search, empty for none."""
    request, answer = search.request, search.answer
    assert answer is not None
    tests = listed([code(test) for test in request.tests], MOST_NAMED_TESTS)
    names = {"culprit": code(search.sha_of(answer.first)[:SHORT]), "pull": revert.pull}
    head = code(revert.head[:SHORT])
    rows = []
    for run in revert.runs:
        before = [
            counts
            for earlier in search.runs
            if earlier.target == run.target and earlier.commit == answer.first
            for counts in earlier.counts.values()
        ]
        address = linkable(run.log_url)
        rows.append(
            ROW.format(
                target=code(run.target),
                before=failed_of(before) if before else "",
                after=failed_of(list(run.counts.values())) if run.counts else STATES[run.state],
                log=LOG.format(url=address) if address else "",
            )
        )
    paragraphs = [
        f"{marker_of(revert.pull)}\n{reverts_line(f'{repository}#{revert.pull}')}",
        SINCE.format(
            pull=revert.pull,
            tests=FAIL[len(request.tests) > 1].format(tests=tests, suite=code(request.suite)),
            targets=listed([code(target) for target in request.targets], MOST_NAMED_TESTS),
            probability=min(answer.probability, MOST_PROBABILITY),
        ),
        PASSES.format(tip=code(revert.tip[:SHORT]), base=code(revert.base), head=head),
        "\n".join([TABLE.format(head=head, **names), *rows]),
        NEVER_MERGED,
        *([PAGE.format(url=url)] if url else []),
    ]
    return "\n\n".join(paragraphs)


def without_notice(body: str) -> tuple[str, bool]:
    """Return a description without the notice above it, and whether the notice says that we closed the draft."""
    if not body.startswith(START):
        return body, False
    notice, _, description = body.partition(END)
    return description.lstrip(), OURS in notice


def with_notice(description: str, reason: str, *, is_ours: bool) -> str:
    """Return a description with a notice above it; `is_ours`: we closed the draft, and may open it again."""
    if not reason:
        return description
    start = f"{START}{OURS}" if is_ours else START
    return f"{start}\n{NOTICE.format(reason=reason)}\n{END}\n\n{description}"
