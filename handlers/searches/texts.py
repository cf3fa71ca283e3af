"""Texts about searches for a culprit."""

from __future__ import annotations

from bot.results.culprit.search import SearchOutcome
from handlers.searches.records import CulpritSearch

CONTINUED = "search {id} continues at the latest at {moment}"
STORED = "step {step} of search {id} stored"
NO_RESULTS_KEY = "the repository has no labs"
UNKNOWN_SEARCH = "search {id} is not known"
NO_RANGE = "{good} is not among the commits before {bad}, or it is more than {most} commits before it"
ENDED = "search {id} has ended"
ASKS = "search {id} asks for {runs} further runs, and has had {count}"
WAITS = "search {id} waits for runs"
REASON = "search {id} for the commit that broke {tests} tests"

RUNNING = "{runs} of at most {most} runs so far; nothing is certain yet."
BEGAN_WITH = "Began with {sha} ({probability:.1%}): {title}"
CHANGED_LAB = (
    "No commit is the cause ({probability:.1%}): the tests fail at {good} too, where they passed before. The device, "
    "the lab or its environment changed."
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
        # Never 100 %: a search is not certain.
        "probability": min(answer.probability, 0.999),
    }
    match SearchOutcome(answer.outcome):
        case SearchOutcome.CULPRIT:
            commit = search.commits[answer.first - 1]
            text = BEGAN_WITH.format(sha=commit.sha[:SHORT], title=commit.title, probability=names["probability"])
            return text + ("." + ONE_DEVICE if len(request.targets) == 1 else "")
        case SearchOutcome.ENVIRONMENT:
            return CHANGED_LAB.format(**names)
        case SearchOutcome.NOT_REPEATED:
            return DOES_NOT_REPEAT.format(**names)
        case SearchOutcome.RANGE:
            return ONE_OF.format(**names)
        case SearchOutcome.BUDGET:
            return OUT_OF_RUNS.format(**names)
