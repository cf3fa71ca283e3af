"""Which commits to test next: those whose runs are expected to say most about the culprit. No I/O."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bot.results.culprit.posterior import Posterior, RangeSegment, entropy

LEAST_INFORMATION = 1e-5
"""Bits of a question that is still worth a run."""
_PARTS = 8
"""A segment is tested at the borders of so many parts of equal probability."""
_LEAST_PROBABILITY = 0.01
"""A segment with less is not tested inside."""
_CAUSE = 8.0
"""How often it counts in addition to learn whether a commit is the cause at all.

Else rare failures of a changed lab use up the budget all over the range."""


MOST_REPEATS = 20
_CHANCE_TO_FAIL = 0.9


@dataclass(frozen=True, slots=True)
class Question:
    """A commit to test on a target, and how many bits the answer is expected to have."""

    commit: int
    target: str
    information: float = 0.0


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates of a series under each hypothesis: the culprit is in one of some parts of the range, or is none."""

    low: Sequence[float]
    high: Sequence[float]
    without: Sequence[float]


class QuestionPlanner:
    """Chooses commits to test, each for what it adds to the others that have no answer yet."""

    def __init__(
        self, posterior: Posterior, series_of: Mapping[str, Sequence[str]], unknown: Collection[int] = ()
    ) -> None:
        """Take the series of each target, and commits whose runs say nothing, such as those that do not build."""
        self._posterior, self._series_of = posterior, series_of
        self._places, self._factors = _places(posterior, unknown)
        weights, segments = _parts(posterior, self._places)
        self._branches = [[*weights, posterior.environment, posterior.not_repeated]]
        """For each combination of answers: the chances of all hypotheses together with it."""
        self._rates = {
            series: _Rates(
                [segment.fits[series].low_rate for segment in segments],
                [segment.fits[series].high_rate for segment in segments],
                posterior.level_rates[series],
            )
            for series in posterior.counts
        }

    def ask(self, target: str) -> Question | None:
        """Return the best question for an idle device of a target, or None if none is worth a run."""
        informations = [0.0] * len(self._places)
        for series in self._series_of[target]:
            rates, sums = self._rates[series], [0.0] * len(self._places)
            for branch in self._branches:
                sums = [total + bits for total, bits in zip(sums, _informations(branch, rates), strict=True)]
            informations = [max(pair) for pair in zip(informations, sums, strict=True)]
        weighted = [bits * factor for bits, factor in zip(informations, self._factors, strict=True)]
        best = max(range(len(weighted)), key=weighted.__getitem__)
        if weighted[best] < LEAST_INFORMATION:
            return None
        question = Question(self._places[best], target, weighted[best])
        self.add(question)
        return question

    def add(self, question: Question) -> None:
        """Take account of a question whose answer is not known yet."""
        if len(self._branches) >= 2**_PARTS:
            return
        place = bisect_left(self._places, question.commit)
        rates = self._rates[self._series_of[question.target][0]]
        chances = [*rates.high[: place + 1], *rates.low[place + 1 :], *rates.without]
        self._branches = [
            [weight * (chance if failed else 1 - chance) for weight, chance in zip(branch, chances, strict=True)]
            for branch in self._branches
            for failed in (True, False)
        ]


def repeats_of(posterior: Posterior, target_series: Sequence[str]) -> int:
    """Return how often a job should run tests that rarely fail: so often that a broken commit is likely to show it."""
    likeliest = max(posterior.segments, key=lambda segment: segment.probability)
    rate = max(likeliest.fits[series].high_rate for series in target_series)
    return min(MOST_REPEATS, math.ceil(math.log(1 - _CHANCE_TO_FAIL) / math.log1p(-min(rate, 0.999))))


def _informations(weights: Sequence[float], rates: _Rates) -> list[float]:
    """Return, for each place, how many bits the answer there has about the hypotheses, times the sum of the weights.

    Bits about whether a commit is the cause count `_CAUSE` times in addition.
    """
    parts = len(rates.low)
    total = sum(weights)
    if total <= 0.0:
        return [0.0] * (parts - 1)
    rest = weights[parts:]
    fail = sum(weight * rate for weight, rate in zip(rest, rates.without, strict=True))
    noise = sum(weight * entropy(rate) for weight, rate in zip(rest, rates.without, strict=True))
    fail_without, noise_without = fail, noise
    fails, noises = [
        list(accumulate(values))
        for values in (
            [weight * rate for weight, rate in zip(weights, rates.high, strict=False)],
            [weight * entropy(rate) for weight, rate in zip(weights, rates.high, strict=False)],
        )
    ]
    rates_before = [weight * rate for weight, rate in zip(weights, rates.low, strict=False)]
    noises_before = [weight * entropy(rate) for weight, rate in zip(weights, rates.low, strict=False)]
    fail, noise = fail + sum(rates_before), noise + sum(noises_before)
    commits = sum(weights[:parts])
    result = list[float]()
    passed_rates = passed_noises = 0.0
    for place in range(parts - 1):
        passed_rates += rates_before[place]
        passed_noises += noises_before[place]
        fail_commits = fail + fails[place] - passed_rates - fail_without
        answer = total * entropy((fail_commits + fail_without) / total)
        of_all = answer - (noise + noises[place] - passed_noises)
        of_cause = answer - noise_without - (commits * entropy(fail_commits / commits) if commits > 0.0 else 0.0)
        result.append(max(0.0, of_all + _CAUSE * of_cause))
    return result


def _places(posterior: Posterior, unknown: Collection[int]) -> tuple[list[int], list[float]]:
    """Return the commits that may be tested, and how likely each can be tested: less so beside those that cannot."""
    places = dict.fromkeys(posterior.tested, 1.0)
    for segment in posterior.segments:
        if segment.last not in unknown:
            places.setdefault(segment.last, 1.0)
        if segment.last - segment.first < 2 or segment.probability < _LEAST_PROBABILITY:
            continue
        failed = sorted(commit for commit in unknown if segment.first < commit <= segment.last)
        for commit in _borders(posterior, segment):
            tested = _nearest(commit, segment, unknown)
            if tested is not None:
                distance = min((abs(tested - broken) for broken in failed), default=0)
                places[tested] = distance / (distance + len(failed) / 2) if failed else 1.0
    places.setdefault(0, 1.0)
    commits = sorted(places)
    return commits, [places[commit] for commit in commits]


def _borders(posterior: Posterior, segment: RangeSegment) -> set[int]:
    sums, borders = posterior.sums, set[int]()
    begin, end = sums[segment.first], sums[segment.last]
    for part in range(1, _PARTS):
        border = begin + (end - begin) * part / _PARTS
        commit = bisect_left(sums, border, segment.first, segment.last)
        borders.update((commit, commit - 1))
    return {commit for commit in borders if segment.first < commit < segment.last}


def _nearest(commit: int, segment: RangeSegment, unknown: Collection[int]) -> int | None:
    """Return the commit inside a segment that can be tested and is nearest to one."""
    for distance in range(segment.last - segment.first):
        for candidate in (commit - distance, commit + distance):
            if segment.first < candidate < segment.last and candidate not in unknown:
                return candidate
    return None


def _parts(posterior: Posterior, places: Sequence[int]) -> tuple[list[float], list[RangeSegment]]:
    """Split the range at all places; return the probability of each part, and the segment it belongs to."""
    sums, weights, segments = posterior.sums, list[float](), list[RangeSegment]()
    remaining = iter(posterior.segments)
    segment = next(remaining, posterior.segments[0])
    for first, last in pairwise([0, *places, posterior.commits]):
        while first >= segment.last and segment is not posterior.segments[-1]:
            segment = next(remaining, segment)
        share = sums[segment.last] - sums[segment.first]
        part = (sums[last] - sums[first]) / share if share > 0 else 0.0
        weights.append(segment.probability * part)
        segments.append(segment)
    return weights, segments
