"""Which commit of a range broke a test, given its runs: a probability for each, and for "none of them". No I/O.

The range has the commits 1 to n; 0 is the commit before it, at which the tests passed. Runs of one test on one target
are a series. Under the hypothesis "commit c", a series fails with one unknown rate before c, and with a higher one from
c on. Under "no commit", it fails with one rate everywhere: a new one if the device, the lab or its environment changed,
or that of its history if the failure does not repeat. Runs split the range into segments. Commits of a segment differ
in their prior alone, so the work is linear in the number of tested commits.

Sources: Henderson et al., "Flake Aware Culprit Finding" (ICST 2023); Ben-Or and Hassidim, "The Bayesian Learner is
Optimal for Noisy Binary Search" (FOCS 2008). Neither knows unknown rates, a changed lab, or several culprits:
docs/decisions/noisy-search.md says what is added.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bot.results.culprit.rates import FailureCounts, StepFit, level_fits, log_marginal, step_fit

COMMITS, ENVIRONMENT, NOT_REPEATED = 0.75, 0.15, 0.1
"""Before any run: that a commit broke the tests, that something else did, and that the failure does not repeat."""
SEVERAL = 0.15
"""That the rate changed more than once within the range."""
CAUTION = 5
"""How often all that speaks against a name counts, since a wrong name costs more than no name."""
UNRELATED = 0.02
"""That a series of several has a cause of its own. It bounds what one test or one device can say about the others."""


@dataclass(frozen=True, slots=True)
class SearchRun:
    """What the runs of one job say about one series: how often its test failed and passed at a commit.

    A series is a target, or a test on a target. Commits that could not be built have no run.
    """

    commit: int
    series: str
    counts: FailureCounts


@dataclass(frozen=True, slots=True)
class RangeSegment:
    """Commits after `first`, up to `last`, which runs do not tell apart; `probability` is that of all of them.

    `fits` has the fit of each series, if the culprit is one of them.
    """

    first: int
    last: int
    probability: float
    fits: Mapping[str, StepFit]


class Posterior:
    """The probabilities of all hypotheses after some runs."""

    def __init__(
        self, prior: Sequence[float], histories: Mapping[str, FailureCounts], runs: Iterable[SearchRun]
    ) -> None:
        """Take the prior of commits 1 to n, the runs of each series before the range, and runs as they ended."""
        self.runs = [run for run in runs if run.counts.total]
        self.commits = len(prior)
        self.prior = prior
        self.sums = [0.0, *accumulate(prior)]
        """The prior of commits up to each position."""
        self.counts: dict[str, dict[int, FailureCounts]] = {series: {} for series in histories}
        for run in self.runs:
            of_commit = self.counts[run.series]
            of_commit[run.commit] = of_commit.get(run.commit, FailureCounts()) + run.counts
        self.tested = sorted({run.commit for run in self.runs})
        self._histories = histories
        self._totals = {series: sum(counts.values(), FailureCounts()) for series, counts in self.counts.items()}
        self._solve()

    def _solve(self) -> None:
        levels = {series: level_fits(self._histories[series], total) for series, total in self._totals.items()}
        self.level_rates = {series: (new[1], old[1]) for series, (new, old) in levels.items()}
        """The mean rates of each series if no commit broke it: in a new environment, and as in its history."""
        bounds = [0, *(commit for commit in self.tested if commit > 0)]
        if bounds[-1] < self.commits:
            bounds.append(self.commits)
        lines, fits = [], []
        good_runs = defaultdict[str, FailureCounts](FailureCounts)
        for first, last in pairwise(bounds):
            for series, of_commit in self.counts.items():
                good_runs[series] += of_commit.get(first, FailureCounts())
            segment_fits = {
                series: step_fit(self._histories[series], good_runs[series], total - good_runs[series])
                for series, total in self._totals.items()
            }
            likelihood = sum(
                self._related(segment_fits[series].log_likelihood, levels[series]) for series in segment_fits
            )
            share = max(self.sums[last] - self.sums[first], 1e-300)
            lines.append(math.log(COMMITS * share) + likelihood)
            fits.append(segment_fits)
        self._log_step = lines
        logs = [
            *lines,
            math.log(ENVIRONMENT) + sum(new[0] for new, _ in levels.values()),
            math.log(NOT_REPEATED) + sum(old[0] for _, old in levels.values()),
        ]
        self._log_total = log_sum(logs)
        *shares, self.environment, self.not_repeated = (math.exp(value - self._log_total) for value in logs)
        self.segments = [
            RangeSegment(first, last, share, segment_fits)
            for (first, last), share, segment_fits in zip(pairwise(bounds), shares, fits, strict=True)
        ]

    def _related(self, log_likelihood: float, levels: tuple[tuple[float, float], tuple[float, float]]) -> float:
        if len(self.counts) == 1:
            return log_likelihood
        unrelated = log_sum([levels[0][0], levels[1][0]]) - math.log(2)
        return log_sum([log_likelihood + math.log1p(-UNRELATED), unrelated + math.log(UNRELATED)])

    def probabilities(self) -> list[float]:
        """Return the probability of each commit of the range, in order."""
        result = list[float]()
        for segment in self.segments:
            prior = self.prior[segment.first : segment.last]
            total = sum(prior) or 1.0
            result += [segment.probability * share / total for share in prior]
        return result

    def chance_of_culprit(self, position: int) -> float:
        """Return the probability that the last commit of a segment broke the tests, even if others changed them too.

        It is a cautious one: all alternatives count `CAUTION` times. They include that the rate changed twice, whose
        work is the square of the number of segments.
        """
        segments = self.segments
        prefix = {
            series: [
                *accumulate((self._counts_up_to(series, segment) for segment in segments), initial=FailureCounts())
            ]
            for series in self.counts
        }
        shares = [self.sums[segment.last] - self.sums[segment.first] for segment in segments]
        with_it, without = (
            [self._log_step[position]],
            [value for number, value in enumerate(self._log_step) if number != position],
        )
        without += [math.log(max(self.environment, 1e-300)) + self._log_total]
        without += [math.log(max(self.not_repeated, 1e-300)) + self._log_total]
        of_two = math.log(SEVERAL)
        for second in range(len(segments)):
            for first in range(second + 1):
                pairs = shares[first] * shares[second] * (1.0 if first == second else 2.0)
                if pairs <= 0.0 or (first == second and segments[first].last - segments[first].first == 1):
                    continue
                value = of_two + math.log(pairs)
                for series, sums in prefix.items():
                    value += log_marginal(sums[first + 1], self._histories[series])
                    value += log_marginal(sums[second + 1] - sums[first + 1])
                    value += log_marginal(self._totals[series] - sums[second + 1])
                (with_it if position in (first, second) else without).append(value)
        against = log_sum(without) + math.log(CAUTION)
        culprit = log_sum(with_it)
        return math.exp(culprit - log_sum([culprit, against]))

    def _counts_up_to(self, series: str, segment: RangeSegment) -> FailureCounts:
        """Return the counts at the commit before a segment."""
        return self.counts[series].get(segment.first, FailureCounts())

    def runs_at(self, commit: int) -> FailureCounts:
        """Return the counts of all series at a commit."""
        return sum((of_commit.get(commit, FailureCounts()) for of_commit in self.counts.values()), FailureCounts())


def log_sum(logs: Sequence[float]) -> float:
    """Return the logarithm of a sum, from the logarithms of its terms."""
    top = max(logs)
    return top if top == -math.inf else top + math.log(sum(math.exp(value - top) for value in logs))


def entropy(chance: float) -> float:
    """Return how many bits an answer has that is "failed" with this chance."""
    if chance <= 0.0 or chance >= 1.0:
        return 0.0
    return -chance * math.log2(chance) - (1 - chance) * math.log2(1 - chance)
