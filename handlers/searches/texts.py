"""Texts about searches for a culprit."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.listing import counted, listed
from bot.core.urls import linkable
from bot.github.text.markdown import code
from bot.results.culprit.posterior import Posterior
from bot.results.culprit.search import CERTAIN, SearchOutcome
from bot.results.ingest.commit_summaries import commit_summary
from bot.results.measurements.texts import number_text
from handlers.searches.records import AskedRun, CulpritSearch, SearchedCommit, SearchRequest, SearchRunState

STARTED = "search {id} is requested"
STORED = "step {step} of search {id} stored"
SWEPT = "{events} for searches and reverts"
NO_GOOD_COMMIT = "the tests never passed, so there is nothing to search"
ONE_COMMIT = "only one commit may be the cause"
NO_RESULTS_KEY = "the repository has no labs"
UNKNOWN_SEARCH = "search {id} is not known"
NO_RANGE = "{good} is not among the commits before {bad}, or it is more than {most} commits before it"
ENDED = "search {id} has ended"
ASKS = "search {id} asks for {runs}, and has had {count}"
WAITS = "search {id} waits for runs"
REASON = "search {id} for the commit that broke {tests}"
REASON_OF_MEASUREMENT = "search {id} for the commit that changed {name}"
NO_CHANGE = "no change of {name} on {target} at {bad} is stored"

# The command
FIND_SUMMARY = (
    "On an issue about a regression or about measurements: search for the change that it began with, on idle devices."
)
USAGE = (
    "Name a target, as in {command}; without a test, I search for the only failure there. On an issue about "
    "measurements, `MEASUREMENT of TEST on TARGET` names one."
)
ON_ISSUES = "Comment this on the issue about the regression."
NOT_ALLOWED = "You need write access to request a search."
NO_REGRESSION = "This is not an open issue of mine about tests that fail, so I know of no failure here."
NO_REQUESTS = "No target that accepts requests is named {target}."
NO_FAILURE = "No failure of this issue on {target} has a commit at which it passed."
NO_CHANGE_ON = "No such measurement of this issue got worse on {target}, or it is as before again."
SEVERAL_FAILURES = "Several failures on {target} began separately. Name a test of one of them, for example {tests}."
REQUESTED = (
    "I search for the change between {good} and {bad} on idle devices of {targets}, and write the answer into this "
    "issue."
)
NO_COMMAND = "the comment requests no search"
REFUSED = "the answer says why"
REPRODUCES = "runs at a nightly commit are requested"

# The comment on the culprit
CULPRIT = "Since this change, {tests} on {targets}, with a probability of {probability:.1%}."
FAIL = ("the test {tests} of {suite} fails", "the tests {tests} of {suite} fail")
EVIDENCE = (
    "I ran them at {count} between {good} and {bad}. At {before}, the commit before this one, they failed in {passes} "
    "runs; at {culprit}, in {failures}."
)
CHANGED = (
    "Since this change, {name} of the test {test} of {suite} is at a new level, with a probability of "
    "{probability:.1%}: {levels}."
)
LEVELS = "{levels} on {target}"
MEASURED_EVIDENCE = (
    "I measured it at {count} between {good} and {bad}. At {before}, the commit before this one, {passes} runs were "
    "closer to the new level; at {culprit}, {failures}."
)
REPRODUCE = "To run a test on the device, comment {command} on a pull request."
MEASURE = "To measure it on the device, comment {command} on a pull request."
WITHDRAWN = "I named this change as the one with which tests began to fail. That was wrong, or is no longer certain."

WITHDRAWN_CHANGE = (
    "I named this change as the one with which a measurement changed. That was wrong, or is no longer certain."
)

# The issue
HEADING = "### The change that it began with"
NOT_STARTED = "The search could not start: {reason}."
ABOUT = "Tests of {suite}: {tests}. Range: {count} after {good}, up to {bad}."
ABOUT_MEASUREMENT = (
    "{name} of {tests} of {suite}: {levels}. Range: {count} after {good}, up to {bad}. A run is at the new level if "
    "the median of what it measures is closer to that."
)
COST = "Cost: {runs}, {minutes:.1f} device minutes."
PAGE = " [The search, step by step]({url})"
RULED_OUT = "Ruled out: {causes}."
NOT_RULED_OUT = "Not ruled out: {causes}."
LAB_CAUSE = "the device, the lab or its environment changed ({probability:.1%})"
NO_FAILURE_CAUSE = "the failure does not repeat ({probability:.1%})"
NO_CHANGE_CAUSE = "the change does not repeat ({probability:.1%})"
COMMITS_CAUSE = "{count} of the range ({probability:.1%} together)"
NO_RESULTS_AT = "No results, so nothing is known of: {commits}."
RUNS = "<details><summary>{runs}</summary>\n\n{table}\n\n</details>"
TABLE = "| run | commit | target | outcome | log |\n| --- | --- | --- | --- | --- |"
ROW = "| {number} | {commit} | {target} | {outcome} | {log} |"
FAILED_OF = "failed {failed} of {count}"
MEASURED = ("{value}, as before", "{value}, new level")
LOG = "[log]({url})"
STATES = {
    SearchRunState.WAITING: "waits for a device",
    SearchRunState.NO_RESULTS: "no results",
    SearchRunState.LOST: "no lab ran it",
}
MOST_PROBABILITY = 0.999
"""Never 100 %: a search is not certain."""
MOST_NAMED_TESTS, MOST_NAMED_COMMITS = 3, 5
RULED = 0.01
"""A cause is ruled out if it is less likely than this."""

RUNNING = "{runs} of at most {most} runs so far; nothing is certain yet."
BEGAN_WITH = "Began with {name} ({probability:.1%}): {title}"
CHANGED_LAB = (
    "No commit is the cause ({probability:.1%}): the tests fail at {good} too, where they passed before. The device, "
    "the lab or its environment changed."
)
PROBABLY_CHANGED_LAB = (
    "Probably no commit is the cause ({probability:.1%}): the tests seem to fail at {good} too, where they passed "
    "before. The runs of the search are used up."
)
NEW_LEVEL_BEFORE = (
    "No commit is the cause ({probability:.1%}): the new level is measured at {good} too, where it was as before. The "
    "device, the lab or its environment changed."
)
PROBABLY_NEW_LEVEL_BEFORE = (
    "Probably no commit is the cause ({probability:.1%}): the new level seems to be measured at {good} too, where it "
    "was as before. The runs of the search are used up."
)
AS_BEFORE = "Cannot tell: the new level is not measured at {bad} any more ({probability:.1%})."
DOES_NOT_REPEAT = "Cannot tell: the tests do not fail at {bad} any more ({probability:.1%})."
ONE_OF = "Cannot tell which commit: it is one of {count}, from {first} to {last} ({probability:.1%})."
OUT_OF_RUNS = (
    "Cannot tell: the search ended after {runs}. If a commit is the cause, it is one of {count}, from {first} to "
    "{last} ({probability:.1%})."
)
ONE_DEVICE = " This rests on one target."
SHORT = 10


def search_sentence(search: CulpritSearch, most_runs: int) -> str:
    """Return the answer of a search in a sentence or two, or how far it is."""
    answer = search.answer
    if answer is None:
        return RUNNING.format(runs=len(search.runs), most=most_runs)
    request = search.request
    names = {
        "good": request.good[:SHORT],
        "bad": request.bad[:SHORT],
        "runs": counted(len(search.runs), "run"),
        "count": answer.last - answer.first + 1,
        "first": search.sha_of(answer.first)[:SHORT],
        "last": search.sha_of(answer.last)[:SHORT],
        "probability": min(answer.probability, MOST_PROBABILITY),
    }
    match SearchOutcome(answer.outcome):
        case SearchOutcome.CULPRIT:
            commit = search.commits[answer.first - 1]
            text = BEGAN_WITH.format(**commit_names(commit, answer.pull), probability=names["probability"])
            return text + ("." + ONE_DEVICE if len(request.targets) == 1 else "")
        case SearchOutcome.ENVIRONMENT:
            certain, probable = CHANGED_LAB, PROBABLY_CHANGED_LAB
            if request.measurement:
                certain, probable = NEW_LEVEL_BEFORE, PROBABLY_NEW_LEVEL_BEFORE
            return (certain if answer.probability >= CERTAIN else probable).format(**names)
        case SearchOutcome.NOT_REPEATED:
            return (AS_BEFORE if request.measurement else DOES_NOT_REPEAT).format(**names)
        case SearchOutcome.RANGE:
            return ONE_OF.format(**names)
        case SearchOutcome.BUDGET:
            return OUT_OF_RUNS.format(**names)


def commit_names(commit: SearchedCommit, pull: int) -> dict[str, str]:
    """Return the `name` of a commit, with that of its pull request unless it is 0, and its `title` (Markdown)."""
    sha = code(commit.sha[:SHORT])
    name = f"#{pull} {sha}" if pull else sha
    return {"name": name, "title": code(commit_summary(commit.title, "").title)}


def reason(search_id: str, request: SearchRequest) -> str:
    """Return why a job runs, for the audit log."""
    if request.measurement:
        return REASON_OF_MEASUREMENT.format(id=search_id, name=request.measurement)
    return REASON.format(id=search_id, tests=counted(len(request.tests), "test"))


def requested(request: SearchRequest) -> str:
    """Return the answer to a request."""
    targets = ", ".join(map(code, request.targets))
    return REQUESTED.format(good=code(request.good[:SHORT]), bad=code(request.bad[:SHORT]), targets=targets)


def culprit_comment(search: CulpritSearch, mention: str) -> str:
    """Return the comment on the pull request that is the culprit (Markdown)."""
    request, answer = search.request, search.answer
    assert answer is not None
    test, target, probability = request.tests[0], request.targets[0], min(answer.probability, MOST_PROBABILITY)
    evidence = {
        "count": counted(len({run.commit for run in search.runs if run.counts}), "commit"),
        "good": code(request.good[:SHORT]),
        "bad": code(request.bad[:SHORT]),
        "before": code(search.sha_of(answer.first - 1)[:SHORT]),
        "passes": _outcomes(search, answer.first - 1),
        "culprit": code(search.sha_of(answer.first)[:SHORT]),
        "failures": _outcomes(search, answer.first),
    }
    if request.measurement:
        name, suite = code(request.measurement), code(request.suite)
        sentences = [
            CHANGED.format(name=name, test=code(test), suite=suite, probability=probability, levels=_levels(search)),
            MEASURED_EVIDENCE.format(**evidence),
        ]
        repeat = MEASURE.format(command=code(f'{mention} benchmark "{test}" on {target}'))
    else:
        tests = listed([code(test) for test in request.tests], MOST_NAMED_TESTS)
        fail = FAIL[len(request.tests) > 1].format(tests=tests, suite=code(request.suite))
        targets = listed([code(target) for target in request.targets], MOST_NAMED_TESTS)
        sentences = [
            CULPRIT.format(tests=fail, targets=targets, probability=probability),
            EVIDENCE.format(**evidence),
        ]
        repeat = REPRODUCE.format(command=code(f'{mention} reproduce "{test}" on {target}'))
    rest = [ONE_DEVICE.strip()] if len(request.targets) == 1 else []
    return "\n\n".join([*sentences, *rest, repeat])


def _levels(search: CulpritSearch) -> str:
    """Return the levels of a measurement on each target (Markdown): `412 -> 467 ms on LAB/TARGET`."""
    levels_of_targets = [
        LEVELS.format(levels=code(f"{number_text(levels.before)} -> {levels.text(levels.after)}"), target=code(target))
        for target, levels in search.levels.items()
    ]
    return listed(levels_of_targets, MOST_NAMED_TESTS)


def withdrawn(search: CulpritSearch) -> str:
    """Return the comment on a pull request that was named before."""
    text = WITHDRAWN_CHANGE if search.request.measurement else WITHDRAWN
    return f"{text} {search_sentence(search, len(search.runs))}"


def _outcomes(search: CulpritSearch, position: int) -> str:
    runs = [count for run in search.runs if run.commit == position for count in run.counts.values()]
    failed, passed = _total(runs)
    return f"{failed} of {failed + passed}"


def not_started(reason: str) -> str:
    """Return the section of an issue about a search that could not start."""
    return f"{HEADING}\n\n{NOT_STARTED.format(reason=reason)}"


def issue_section(search: CulpritSearch, posterior: Posterior, most_runs: int, url: str = "") -> str:
    """Return the section of the issue about a search (Markdown): its answer, its cost, and its runs.

    `url` is the page of the search, empty for none.
    """
    request = search.request
    about = (ABOUT_MEASUREMENT if request.measurement else ABOUT).format(
        name=code(request.measurement),
        levels=_levels(search),
        suite=code(request.suite),
        tests=listed([code(test) for test in request.tests], MOST_NAMED_TESTS),
        count=counted(len(search.commits), "commit"),
        good=code(request.good[:SHORT]),
        bad=code(request.bad[:SHORT]),
    )
    runs = counted(len(search.runs), "run")
    rows = "\n".join([TABLE, *(_row(search, run) for run in search.runs)])
    paragraphs = [
        HEADING,
        f"**{search_sentence(search, most_runs)}**",
        about,
        *_causes(search, posterior),
        COST.format(runs=runs, minutes=search.seconds / 60) + (PAGE.format(url=url) if url else ""),
        *([RUNS.format(runs=runs, table=rows)] if search.runs else []),
    ]
    return "\n\n".join(paragraphs)


def _causes(search: CulpritSearch, posterior: Posterior) -> list[str]:
    """Say which causes are ruled out, once there are runs of both ends."""
    if not {0, posterior.commits} <= set(posterior.tested):
        return []
    chances = posterior.probabilities()
    unlikely = [chance for chance in chances if chance < RULED]
    no_repeat = NO_CHANGE_CAUSE if search.request.measurement else NO_FAILURE_CAUSE
    causes = [
        (COMMITS_CAUSE.format(count=counted(len(unlikely), "commit"), probability=sum(unlikely)), bool(unlikely)),
        (LAB_CAUSE.format(probability=posterior.environment), posterior.environment < RULED),
        (no_repeat.format(probability=posterior.not_repeated), posterior.not_repeated < RULED),
    ]
    lines = []
    if ruled := [text for text, is_ruled in causes if is_ruled]:
        lines.append(RULED_OUT.format(causes="; ".join(ruled)))
    if left := [text for text, is_ruled in causes[1:] if not is_ruled]:
        lines.append(NOT_RULED_OUT.format(causes="; ".join(left)))
    seen = {run.commit for run in search.runs if run.state is SearchRunState.RESULTS}
    silent = sorted({run.commit for run in search.runs if run.state is SearchRunState.NO_RESULTS} - seen)
    if silent:
        commits = listed([code(search.sha_of(position)[:SHORT]) for position in silent], MOST_NAMED_COMMITS)
        lines.append(NO_RESULTS_AT.format(commits=commits))
    return lines


def _row(search: CulpritSearch, run: AskedRun) -> str:
    outcome = failed_of(list(run.counts.values())) if run.counts else STATES[run.state]
    if run.value is not None:
        failed, _ = _total(list(run.counts.values()))
        outcome = MEASURED[bool(failed)].format(value=code(search.levels[run.target].text(run.value)))
    url = linkable(run.log_url)
    return ROW.format(
        number=run.number,
        commit=code(search.sha_of(run.commit)[:SHORT]),
        target=code(run.target),
        outcome=outcome,
        log=LOG.format(url=url) if url else "",
    )


def failed_of(counts: Sequence[tuple[int, int]]) -> str:
    """Say how many of some runs failed; `counts` are pairs of failures and passes."""
    failed, passed = _total(counts)
    return FAILED_OF.format(failed=failed, count=failed + passed)


def _total(counts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(failed for failed, _ in counts), sum(passed for _, passed in counts)
