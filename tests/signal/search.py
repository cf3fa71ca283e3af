"""`python -m tests.signal.search --seeds 0-199`: how often searches for a culprit are right, and their numbers of runs.

Each seed is one search of every kind: a range of commits with planted culprits, a test with known failure rates before
and after them or a measurement with known noise (`measured_noise`), and labs that answer. With `--write`, update the
table in docs/signal.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median

import click

from bot.core.docs import replace_block, table
from bot.results.culprit.posterior import SearchRun, entropy
from bot.results.culprit.priors import CommitTraits, prior_of
from bot.results.culprit.questions import Question
from bot.results.culprit.rates import LEAST_ODDS_RATIO, LEAST_RISE, FailureCounts
from bot.results.culprit.search import CERTAIN, SearchOutcome, SearchRange, SearchVerdict, search_step
from bot.results.measurements.changes import LEVEL_NIGHTS, analysis_of
from bot.results.measurements.levels import MeasuredLevels
from tests.signal.measured_noise import DEVIATION, NOISES, QUANTISED

PAGE = Path(__file__).parents[2] / "docs" / "signal.md"
BLOCK = "searches"
HEADER = (
    "what happened",
    "searches",
    "right name",
    "wrong name",
    "not a commit",
    "cannot tell",
    "median runs",
    "runs / bound",
    "git bisect: right",
    "wrong",
    "runs",
    "three repeats: right",
    "wrong",
    "runs",
)
COMMITS = (2, 4, 10, 30, 100, 300, 1_000, 2_000)
AFTER, BEFORE = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.0), (0.0, 0.0, 0.01, 0.05, 0.1, 0.2, 0.3)
BUDGETS = (200, 400)
HISTORY = (60, 200)
TARGETS = ("phone", "board")
ONE = TARGETS[:1]
REPEATS = 3
NIGHTS, NEW_NIGHTS = 120, 15
"""Nights of a measurement before a change and after it."""
NORMAL = "normal"
OTHER_NOISES = tuple(sorted(NOISES.keys() - {NORMAL, QUANTISED}))
NONE = "-"

Rates = tuple[float, float]
"""The failure rates of a test before and after a change."""


class MeasuringDevice:
    """A device whose nightly values, with a kind of noise, changed their level, and that goes on to measure.

    Each run has the noise of a night, though a job takes the median of three: what one run measures has much in common.
    """

    def __init__(self, rng: Random, changed: float, noise: str) -> None:
        self.is_normal = noise == NORMAL
        self._changed = changed
        change, nights = None, list[float]()
        while change is None:  # without a report, there is nothing to search
            self._noise = NOISES[noise](rng)
            offsets = islice(self._noise, NIGHTS + NEW_NIGHTS)
            nights = [math.exp(offset) * (changed if night >= NIGHTS else 1) for night, offset in enumerate(offsets)]
            reports = (
                change for change in analysis_of(nights).changes if change.confirmed >= NIGHTS and change.is_rise
            )
            change = next(reports, None)
        self._levels = MeasuredLevels(change.before, change.after)
        self.history = FailureCounts(*self._levels.count_new(nights[: change.begin][-LEVEL_NIGHTS:]))

    def is_new_level_measured(self, *, is_changed: bool) -> bool:
        """Measure a commit before the change or after it, and return whether the value is closer to the new level."""
        return self._levels.is_new(math.exp(next(self._noise, 0.0)) * (self._changed if is_changed else 1))


@dataclass
class PlantedCase:
    """A range with planted culprits.

    `rates` has, for each series, the rate up to each culprit and after the last one. `level_rate` is the rate at every
    commit, if no commit is the cause. `broken` is the run from which on a lab fails every test; `not_built` are commits
    without results. With a `device`, what it measures decides whether a run counts as failed, at about the `rates`.
    """

    commits: int
    culprits: list[int]
    rates: dict[str, list[float]]
    rng: Random
    budget: int
    prior: list[float]
    idle: int = 1
    targets: Sequence[str] = ONE
    tests: int = 1
    level_rate: float | None = None
    broken: int | None = None
    not_built: frozenset[int] = frozenset()
    histories: dict[str, FailureCounts] = field(default_factory=dict)
    device: MeasuringDevice | None = None

    @property
    def is_within_reach(self) -> bool:
        """Whether the budget is twice what it takes to tell that no commit is the cause, if all rates are known.

        Under "no commit", one end of the range has another rate than under "the first commit", or "the last one".
        """
        low, high = self.rates["phone"]
        assert self.level_rate is not None
        alternative = high if self.level_rate == low else low
        needed = (2 * CERTAIN - 1) * math.log(CERTAIN / (1 - CERTAIN))
        return self.budget * _divergence(self.level_rate, alternative) >= 2 * needed

    def fails(self, commit: int, series: str, run: int) -> bool:
        """Return the outcome of a test at a commit."""
        if self.broken is not None and run >= self.broken:
            return True
        level = sum(culprit <= commit for culprit in self.culprits)
        rate = self.rates[series][level] if self.level_rate is None else self.level_rate
        if self.device is not None:
            return self.device.is_new_level_measured(is_changed=rate == self.rates[series][-1])
        return self.rng.random() < rate

    @property
    def series_of(self) -> dict[str, list[str]]:
        """Return the series of each target."""
        return {target: [name for name in self.rates if name.startswith(target)] for target in self.targets}

    @property
    def has_bound(self) -> bool:
        """Whether the information bound is known: for one device, one test and one culprit."""
        is_normal = self.device is None or self.device.is_normal
        return len(self.rates) == len(self.culprits) == self.idle == 1 and self.level_rate is None and is_normal

    @property
    def bound(self) -> float:
        """Return the information bound of the first series: see `information_bound`."""
        low, *_, high = self.rates[next(iter(self.rates))]
        return information_bound(self.commits, low, high)


@dataclass(slots=True)
class MethodScore:
    """The searches of one method: names that are right or wrong, other ends, and how many runs each search took.

    `recognized` counts "not a commit" where it is right, of those `within_reach` of the budget.
    """

    right: int = 0
    wrong: int = 0
    not_commit: int = 0
    untold: int = 0
    within_reach: int = 0
    recognized: int = 0
    runs: list[int] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def add(self, addend: MethodScore) -> None:
        """Add the searches of another score."""
        self.right, self.wrong = self.right + addend.right, self.wrong + addend.wrong
        self.not_commit, self.untold = self.not_commit + addend.not_commit, self.untold + addend.untold
        self.within_reach += addend.within_reach
        self.recognized += addend.recognized
        self.runs += addend.runs
        self.ratios += addend.ratios

    def count(self, name: int | None, runs: int, case: PlantedCase) -> None:
        """Count a search that ended with a name or without one."""
        self.runs.append(runs)
        if name is None:
            self.untold += 1
        elif name in case.culprits and case.level_rate is None:
            self.right += 1
        else:
            self.wrong += 1


@dataclass(slots=True)
class KindScore:
    """The searches of one kind, by method; `over_budget` counts those that took more runs than their budget."""

    search: MethodScore = field(default_factory=MethodScore)
    bisect: MethodScore = field(default_factory=MethodScore)
    repeated: MethodScore = field(default_factory=MethodScore)
    over_budget: int = 0

    def add(self, addend: KindScore) -> None:
        """Add the searches of another kind."""
        self.search.add(addend.search)
        self.bisect.add(addend.bisect)
        self.repeated.add(addend.repeated)
        self.over_budget += addend.over_budget


def information_bound(commits: int, low: float, high: float, error: float = 1 - CERTAIN) -> float:
    """Return how many runs a search for one of n commits needs at least on average, even if it knows the failure rates.

    No search can do better that names the culprit with the probability 1 - error, and nobody with the same probability
    if the lab changed, so that the test fails at one rate q everywhere. Such a search names each of n commits with
    error / n on average if the lab changed. By the data-processing inequality (Kaufmann, Cappé, Garivier, "On the
    complexity of best-arm identification", JMLR 2016, lemma 1), the expected runs times the largest divergence of a run
    are at least kl(1 - error, error / n). For the worst q, that divergence is the capacity C of the channel from
    "before or after" to "failed or passed" (Gallager, "Information theory and reliable communication", theorem 4.5.1),
    so the bound is about log2(n / error) / C. The older log2(n) / C of noisy binary search (Ben-Or and Hassidim) knows
    no changed labs.
    """
    chance = error / commits
    divergence = (1 - error) * math.log2((1 - error) / chance) + error * math.log2(error / (1 - chance))
    return divergence / _capacity(low, high)


def _divergence(rate: float, alternative: float) -> float:
    """Return the divergence of Kullback and Leibler between two rates, in nats."""
    total = 0.0
    for chance, opposite in ((rate, alternative), (1 - rate, 1 - alternative)):
        if chance > 0:
            total += chance * math.log(chance / opposite) if opposite > 0 else math.inf
    return total


def _capacity(low: float, high: float) -> float:
    """Return the capacity of a binary channel in bits, by trying shares of inputs."""
    shares = (step / 200 for step in range(1, 200))
    return max(
        entropy(share * high + (1 - share) * low) - share * entropy(high) - (1 - share) * entropy(low)
        for share in shares
    )


def _case(rng: Random, rates: Rates, **traits: object) -> PlantedCase:
    low, high = rates
    commits = rng.choice(COMMITS)
    culprit = rng.randint(1, commits)
    case = PlantedCase(commits, [culprit], {"phone": [low, high]}, rng, rng.choice(BUDGETS), [1 / commits] * commits)
    for name, value in traits.items():
        setattr(case, name, value)
    return case


def _rates(
    rng: Random, bad_rates: Sequence[float], good_rates: Sequence[float] = BEFORE, rise: float = LEAST_RISE
) -> Rates:
    pairs = [(low, high) for low in good_rates for high in bad_rates if high >= low + rise and _is_clear(low, high)]
    return rng.choice(pairs)


def _is_clear(low: float, high: float) -> bool:
    """Whether a change of a rate is one that is looked for."""
    return high * (1 - low) >= LEAST_ODDS_RATIO * low * (1 - high)


def _steady(rng: Random) -> PlantedCase:
    return _case(rng, (0.0, 1.0))


def _noisy_before(rng: Random) -> PlantedCase:
    return _case(rng, _rates(rng, (1.0,), BEFORE[2:]))


def _half(rng: Random) -> PlantedCase:
    return _case(rng, _rates(rng, (0.5, 0.75)))


def _rare(rng: Random) -> PlantedCase:
    return _case(rng, _rates(rng, AFTER[:4]))


def _not_built(rng: Random) -> PlantedCase:
    case = _case(rng, _rates(rng, AFTER[3:], rise=0.2))
    share, broken = rng.choice((0.05, 0.2, 0.4)), set[int]()
    while len(broken) < share * (case.commits - 1):
        begin = rng.randint(1, case.commits - 1)
        broken.update(range(begin, min(case.commits, begin + rng.choice((1, 1, 3, 10)))))
    case.not_built = frozenset(broken)
    return case


def _likely(rng: Random) -> PlantedCase:
    """Half of the commits touch only docs, and some are reverted: the culprit is one of the others."""
    case = _case(rng, _rates(rng, AFTER[3:], rise=0.2))
    traits = [CommitTraits(only_docs=rng.random() < 0.5) for _ in range(case.commits)]
    traits[case.culprits[0] - 1] = CommitTraits()
    case.prior = prior_of(traits)
    return case


def _several(rng: Random) -> PlantedCase:
    case = _case(rng, _rates(rng, AFTER[3:], rise=0.2))
    low, high = case.rates["phone"]
    case.commits = max(4, case.commits)
    case.prior = [1 / case.commits] * case.commits
    case.culprits = sorted(rng.sample(range(1, case.commits + 1), 2))
    middle = low + (high - low) * rng.choice((0.3, 0.5, 0.7))
    case.rates["phone"] = [low, middle, high]
    return case


def _relanded(rng: Random) -> PlantedCase:
    """The change breaks the test, is reverted, and lands again; only the revert is no culprit."""
    case = _case(rng, _rates(rng, AFTER[4:], rise=0.3))
    low, high = case.rates["phone"]
    case.commits = max(4, case.commits)
    case.prior = [1 / case.commits] * case.commits
    first, reverted, second = sorted(rng.sample(range(1, case.commits + 1), 3))
    case.culprits = [first, reverted, second]
    case.rates["phone"] = [low, high, low, high]
    return case


def _two_targets(rng: Random) -> PlantedCase:
    case = _case(rng, _rates(rng, AFTER[3:], rise=0.2), targets=TARGETS, idle=2)
    case.rates["board"] = list(_rates(rng, AFTER[3:], rise=0.2))
    return case


def _broken_device(rng: Random) -> PlantedCase:
    case = _case(rng, _rates(rng, AFTER[3:], rise=0.2), targets=TARGETS, idle=2)
    case.rates["board"] = [rng.choice((0.5, 1.0))] * 2
    return case


def _batch(rng: Random) -> PlantedCase:
    case = _case(rng, (0.0, 1.0), tests=3)
    case.rates = {f"phone {number}": list(_rates(rng, AFTER[3:], rise=0.2)) for number in range(3)}
    return case


def _devices(rng: Random) -> PlantedCase:
    return _case(rng, _rates(rng, AFTER[4:], rise=0.2), idle=4)


def _environment(rng: Random) -> PlantedCase:
    rates = _rates(rng, AFTER[2:], rise=0.15)
    return _case(rng, rates, level_rate=rates[1])


def _rarely_new(rng: Random) -> PlantedCase:
    rates = _rates(rng, AFTER[:2], BEFORE[:3])
    return _case(rng, rates, level_rate=rates[1])


def _recovered(rng: Random) -> PlantedCase:
    rates = _rates(rng, AFTER[3:], rise=0.2)
    return _case(rng, rates, level_rate=rates[0])


def _breaks(rng: Random) -> PlantedCase:
    return _case(rng, _rates(rng, AFTER[4:], rise=0.2), broken=rng.randint(1, 15))


def _random(rng: Random) -> PlantedCase:
    return _case(rng, (rng.choice(BEFORE[:-1]), 1.0), level_rate=0.5)


def _measured(changed: float, *noises: str) -> Callable[[Random], PlantedCase]:
    def case(rng: Random) -> PlantedCase:
        # Half of the change is so many standard deviations of normal noise.
        crossed = math.erfc(math.log(changed) / 2 / DEVIATION / math.sqrt(2)) / 2
        return _case(rng, (crossed, 1 - crossed), device=MeasuringDevice(rng, changed, rng.choice(noises)))

    return case


def _device_slower(rng: Random) -> PlantedCase:
    case = _measured(1.05, NORMAL)(rng)
    case.level_rate = case.rates["phone"][1]
    return case


KINDS: Mapping[str, Callable[[Random], PlantedCase]] = {
    "fails always, failed never before": _steady,
    "fails always, was flaky before": _noisy_before,
    "fails in 50 or 75 %": _half,
    "fails in 5 to 35 %": _rare,
    "commits without results": _not_built,
    "half of the commits are docs": _likely,
    "four devices at once": _devices,
    "two targets": _two_targets,
    "two targets, one is broken": _broken_device,
    "three tests together": _batch,
    "two culprits": _several,
    "reverted and landed again": _relanded,
    "the lab breaks during the search": _breaks,
    "the lab changed before": _environment,
    "the lab changed, fails in 5 or 10 %": _rarely_new,
    "the failure does not repeat": _recovered,
    "the lab answers at random": _random,
    "measured, +5 %": _measured(1.05, NORMAL),
    "measured, +10 %": _measured(1.1, NORMAL),
    "measured, +10 %, other noise": _measured(1.1, *OTHER_NOISES),
    "measured, +5 %, the device changed": _device_slower,
}


RARE = ("fails in 5 to 35 %", "the lab changed, fails in 5 or 10 %")
"""Kinds of tests that rarely fail: their searches take hundreds of runs, or end with the budget."""


def searched(case: PlantedCase) -> tuple[SearchVerdict, int]:
    """Search the culprit of a case; return the verdict and how many runs were asked."""
    for series, rates in case.rates.items():
        size = case.rng.choice(HISTORY)
        failures = sum(case.rng.random() < rates[0] for _ in range(size))
        case.histories[series] = case.device.history if case.device else FailureCounts(failures, size - failures)
    of_range = SearchRange(case.prior, case.histories, case.series_of)
    idle = [case.targets[device % len(case.targets)] for device in range(case.idle)]
    runs, unknown, spent = list[SearchRun](), set[int](), 0
    while True:
        step = search_step(of_range, runs, idle=idle, unknown=unknown, budget=case.budget - spent)
        if step.verdict is not None:
            return step.verdict, spent
        for question in step.questions:
            spent += 1
            if question.commit in case.not_built:
                unknown.add(question.commit)
            else:
                runs += _answers(case, question, spent)


def _answers(case: PlantedCase, question: Question, run: int) -> Iterator[SearchRun]:
    for series in case.series_of[question.target]:
        failed = case.fails(question.commit, series, run)
        yield SearchRun(question.commit, series, FailureCounts(int(failed), int(not failed)))


def bisected(case: PlantedCase, repeats: int) -> tuple[int | None, int]:
    """Search as `git bisect` does, with the majority of some repeats; return the name, if any, and the runs."""
    good, bad, skipped, spent = 0, case.commits, set[int](), 0
    series = next(iter(case.rates))
    while bad - good > 1:
        middle = (good + bad) // 2
        open_commits = [commit for commit in range(good + 1, bad) if commit not in skipped]
        if not open_commits:
            return None, spent
        commit = min(open_commits, key=lambda addend: abs(addend - middle))
        if commit in case.not_built:
            skipped.add(commit)
            spent += 1
            continue
        failures = sum(case.fails(commit, series, spent + number) for number in range(repeats))
        spent += repeats
        if 2 * failures > repeats:
            bad = commit
        else:
            good = commit
    return bad, spent


def measured(kind: str, seeds: Iterable[int], *, compared: bool = True) -> KindScore:
    """Return the score of one kind of case for some seeds; `compared` also bisects them."""
    score = KindScore()
    for seed in seeds:
        case = KINDS[kind](Random(f"{kind} {seed}"))
        verdict, spent = searched(case)
        name = verdict.first if verdict.outcome is SearchOutcome.CULPRIT else None
        score.search.count(name, spent, case)
        score.over_budget += spent > case.budget
        is_recognized = verdict.outcome in (SearchOutcome.ENVIRONMENT, SearchOutcome.NOT_REPEATED)
        if case.level_rate is not None and case.is_within_reach:
            score.search.within_reach += 1
            score.search.recognized += is_recognized
        if is_recognized:
            score.search.untold -= 1
            score.search.not_commit += 1
        if name is not None and case.has_bound:
            score.search.ratios.append(spent / case.bound)
        if compared:
            score.bisect.count(*bisected(case, 1), case)
            score.repeated.count(*bisected(case, REPEATS), case)
    return score


def total_of(scores: Mapping[str, KindScore]) -> KindScore:
    """Return the sum of all kinds."""
    total = KindScore()
    for score in scores.values():
        total.add(score)
    return total


def rows(scores: Mapping[str, KindScore]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for kind, score in {**scores, "**all**": total_of(scores)}.items():
        search = score.search
        ratio = f"{median(search.ratios):.2f}" if search.ratios else NONE
        counts = (len(search.runs), search.right, search.wrong, search.not_commit, search.untold)
        yield (
            kind,
            *(f"{count:,}" for count in counts),
            f"{median(search.runs):.0f}",
            ratio,
            *_compared(score.bisect),
            *_compared(score.repeated),
        )


def _compared(score: MethodScore) -> tuple[str, ...]:
    return (f"{score.right:,}", f"{score.wrong:,}", f"{median(score.runs):.0f}" if score.runs else NONE)


def _summary(scores: Mapping[str, KindScore]) -> dict[str, object]:
    total = total_of(scores)
    names = total.search.right + total.search.wrong
    frequent = total_of({kind: score for kind, score in scores.items() if kind not in RARE}).search
    return {
        "names": names,
        "wrong_names": total.search.wrong,
        "wrong_share": total.search.wrong / max(1, names),
        "not_a_commit_recognised": frequent.recognized / max(1, frequent.within_reach),
        "not_a_commit_recognised_with_rare_failures": total.search.recognized / max(1, total.search.within_reach),
        "median_runs_by_bound": median(total.search.ratios),
        "over_budget": total.over_budget,
        "kinds": {kind: asdict(score) for kind, score in scores.items()},
    }


def _seeds_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


@click.command()
@click.option("--seeds", default="0-199", show_default=True, help="The first and the last seed, as in 0-199.")
@click.option("--json", "as_json", is_flag=True, help="Print counts as JSON.")
@click.option("--write", is_flag=True, help="Write the table into docs/signal.md.")
def main(seeds: str, as_json: bool, write: bool) -> None:
    """Simulate searches for a culprit, and print how often they are right."""
    scores = {kind: measured(kind, _seeds_of(seeds)) for kind in KINDS}
    text = table(HEADER, rows(scores))
    click.echo(json.dumps(_summary(scores), indent=2) if as_json else text)
    if write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), BLOCK, text), encoding="utf-8")


if __name__ == "__main__":
    main()
