"""Texts about searches for a culprit."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.listing import listed
from bot.core.urls import linkable
from bot.github.text.markdown import code
from bot.results.culprit.posterior import Posterior
from bot.results.culprit.search import CERTAIN, SearchOutcome
from bot.results.ingest.commit_summaries import commit_summary
from bot.results.report.texts import counted
from handlers.searches.records import AskedRun, CulpritSearch, SearchedCommit, SearchRequest, SearchRunState

STARTED = "search {id} is requested"
STORED = "step {step} of search {id} stored"
SWEPT = "{count} searches look for jobs"
NO_GOOD_COMMIT = "the tests never passed, so there is nothing to search"
ONE_COMMIT = "only one commit may be the cause"
NO_RESULTS_KEY = "the repository has no labs"
UNKNOWN_SEARCH = "search {id} is not known"
NO_RANGE = "{good} is not among the commits before {bad}, or it is more than {most} commits before it"
ENDED = "search {id} has ended"
ASKS = "search {id} asks for {runs} further runs, and has had {count}"
WAITS = "search {id} waits for runs"
REASON = "search {id} for the commit that broke {tests}"

# The command
FIND_SUMMARY = "On an issue about a regression: search for the change that it began with, on idle devices."
USAGE = "Name a target, as in {command}; without a test, I search for the only failure there."
ON_ISSUES = "Comment this on the issue about the regression."
NOT_ALLOWED = "You need write access to request a search."
NO_REGRESSION = "This is not an open issue of mine about tests that fail, so I know of no failure here."
NO_REQUESTS = "No target that accepts requests is named {target}."
NO_FAILURE = "No failure of this issue on {target} has a commit at which it passed."
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
REPRODUCE = "To run a test on the device, comment {command} on a pull request."
WITHDRAWN = "I named this change as the one with which tests began to fail. That was wrong, or is no longer certain."

# The issue
HEADING = "### The change that it began with"
NOT_STARTED = "The search could not start: {reason}."
ABOUT = "Tests of {suite}: {tests}. Range: {count} after {good}, up to {bad}."
COST = "Cost: {runs}, {minutes:.1f} device minutes."
PAGE = " [The search, step by step]({url})"
RULED_OUT = "Ruled out: {causes}."
NOT_RULED_OUT = "Not ruled out: {causes}."
LAB_CAUSE = "the device, the lab or its environment changed ({probability:.1%})"
NO_FAILURE_CAUSE = "the failure does not repeat ({probability:.1%})"
COMMITS_CAUSE = "{count} of the range ({probability:.1%} together)"
NO_RESULTS_AT = "No results, so nothing is known of: {commits}."
RUNS = "<details><summary>{runs}</summary>\n\n{table}\n\n</details>"
TABLE = "| run | commit | target | outcome | log |\n| --- | --- | --- | --- | --- |"
ROW = "| {number} | {commit} | {target} | {outcome} | {log} |"
FAILED_OF = "failed {failed} of {count}"
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
DOES_NOT_REPEAT = "Cannot tell: the tests do not fail at {bad} any more ({probability:.1%})."
ONE_OF = "Cannot tell which commit: it is one of {count}, from {first} to {last} ({probability:.1%})."
OUT_OF_RUNS = (
    "Cannot tell: the search ended after {runs} runs. If a commit is the cause, it is one of {count}, from {first} to "
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
        "runs": len(search.runs),
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
            return (CHANGED_LAB if answer.probability >= CERTAIN else PROBABLY_CHANGED_LAB).format(**names)
        case SearchOutcome.NOT_REPEATED:
            return DOES_NOT_REPEAT.format(**names)
        case SearchOutcome.RANGE:
            return ONE_OF.format(**names)
        case SearchOutcome.BUDGET:
            return OUT_OF_RUNS.format(**names)


def commit_names(commit: SearchedCommit, pull: int) -> dict[str, str]:
    """Return the `name` of a commit, with that of its pull request unless it is 0, and its `title` (Markdown)."""
    sha = code(commit.sha[:SHORT])
    name = f"#{pull} {sha}" if pull else sha
    return {"name": name, "title": code(commit_summary(commit.title, "").title)}


def requested(request: SearchRequest) -> str:
    """Return the answer to a request."""
    targets = ", ".join(map(code, request.targets))
    return REQUESTED.format(good=code(request.good[:SHORT]), bad=code(request.bad[:SHORT]), targets=targets)


def culprit_comment(search: CulpritSearch, mention: str) -> str:
    """Return the comment on the pull request that is the culprit (Markdown)."""
    request, answer = search.request, search.answer
    assert answer is not None
    tests = listed([code(test) for test in request.tests], MOST_NAMED_TESTS)
    fail = FAIL[len(request.tests) > 1].format(tests=tests, suite=code(request.suite))
    targets = listed([code(target) for target in request.targets], MOST_NAMED_TESTS)
    test, target = request.tests[0], request.targets[0]
    command = f'{mention} reproduce "{test}" on {target}'
    sentences = [
        CULPRIT.format(tests=fail, targets=targets, probability=min(answer.probability, MOST_PROBABILITY)),
        EVIDENCE.format(
            count=counted(len({run.commit for run in search.runs if run.counts}), "commit"),
            good=code(request.good[:SHORT]),
            bad=code(request.bad[:SHORT]),
            before=code(search.sha_of(answer.first - 1)[:SHORT]),
            passes=_outcomes(search, answer.first - 1),
            culprit=code(search.sha_of(answer.first)[:SHORT]),
            failures=_outcomes(search, answer.first),
        ),
    ]
    rest = [ONE_DEVICE.strip()] if len(request.targets) == 1 else []
    return "\n\n".join([*sentences, *rest, REPRODUCE.format(command=code(command))])


def withdrawn(search: CulpritSearch) -> str:
    """Return the comment on a pull request that was named before."""
    return f"{WITHDRAWN} {search_sentence(search, len(search.runs))}"


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
    about = ABOUT.format(
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
    causes = [
        (COMMITS_CAUSE.format(count=counted(len(unlikely), "commit"), probability=sum(unlikely)), bool(unlikely)),
        (LAB_CAUSE.format(probability=posterior.environment), posterior.environment < RULED),
        (NO_FAILURE_CAUSE.format(probability=posterior.not_repeated), posterior.not_repeated < RULED),
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
