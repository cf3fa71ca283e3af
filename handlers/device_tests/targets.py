"""Find the targets that accept requests, and those that a person names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.config.types import matches
from bot.core.nearest import nearest_names
from bot.results.settings.targets import EVERY_PUSH, NIGHTLY_ONLY, TargetSettings, per_day
from handlers.device_tests.degraded.rule import DegradedTarget, effective_tier
from handlers.device_tests.queue import TargetLimits
from handlers.results.config import labs_of

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.results.settings.results import Results
    from handlers.device_tests.store import JobRequests


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """A target that accepts requests."""

    lab: str
    name: str
    settings: TargetSettings

    @property
    def full_name(self) -> str:
        """The target as people write it, LAB/TARGET."""
        return f"{self.lab}/{self.name}"

    @property
    def limits(self) -> TargetLimits:
        """The limits of a target, for the queue."""
        return TargetLimits(self.settings.slots, self.settings.timeout_seconds)


@dataclass(frozen=True, slots=True)
class NamedTargets:
    """The meaning of names: targets, unknown names, and names of targets that accept no requests."""

    targets: tuple[RequestTarget, ...] = ()
    unknown: tuple[str, ...] = ()
    nightly: tuple[str, ...] = ()


def request_targets(results: Results | None) -> list[RequestTarget]:
    """Return the targets that accept requests, in the order of app.yaml."""
    labs = results.labs.items() if results else ()
    return [
        RequestTarget(lab, name, settings)
        for lab, of in labs
        for name, settings in of.targets.items()
        if settings.takes_requests
    ]


def without_degraded(known: Iterable[RequestTarget], degraded: Mapping[str, DegradedTarget]) -> list[RequestTarget]:
    """Return the targets as they behave while some are degraded by one tier; `degraded` has those, as LAB/TARGET."""
    found = []
    for one in known:
        tier = effective_tier(one.settings.tier, degraded.get(one.full_name))
        # A target that drops to the nightly tier accepts no requests.
        if tier < NIGHTLY_ONLY:
            found.append(replace(one, settings=one.settings.model_copy(update={"tier": tier})))
    return found


def find_request_target(config: RepositoryConfig | None, lab: str, name: str) -> RequestTarget | None:
    """Return a target; None if app.yaml no longer has it, or it no longer accepts requests."""
    of = labs_of(config).get(lab) if config is not None else None
    settings = of.targets.get(name) if of else None
    return RequestTarget(lab, name, settings) if settings and settings.takes_requests else None


def named_targets(results: Results, names: Iterable[str]) -> NamedTargets:
    """Find what names mean: a target's own name, of whichever labs have it, or LAB/TARGET. Case does not matter."""
    known = request_targets(results)
    everything = {
        form.casefold() for lab, of in results.labs.items() for name in of.targets for form in (name, f"{lab}/{name}")
    }
    found: dict[str, RequestTarget] = {}
    unknown, nightly = list[str](), list[str]()
    for name in names:
        wanted = name.casefold()
        meant = [one for one in known if wanted in (one.name.casefold(), one.full_name.casefold())]
        found |= {one.full_name: one for one in meant}
        if not meant:
            (nightly if wanted in everything else unknown).append(name)
    return NamedTargets(tuple(found.values()), tuple(unknown), tuple(nightly))


def nearest_targets(name: str, known: Sequence[RequestTarget]) -> list[str]:
    """Return the names of targets that are most like one that no lab has, the likest first."""
    return nearest_names(name, [one.full_name if "/" in name else one.name for one in known])


def labeled_targets(known: Iterable[RequestTarget], label: str) -> list[RequestTarget]:
    """Return the targets whose label this is; GitHub has one label of a name, whatever its case."""
    return [one for one in known if one.settings.label_of(one.name).casefold() == label.casefold()]


def pushed_targets(known: Iterable[RequestTarget], changed: Sequence[str] | None) -> list[RequestTarget]:
    """Return the targets that test every push that changes these files; None: the files are unknown."""
    return [one for one in known if one.settings.tier == EVERY_PUSH and _concerned(one.settings, changed)]


def _concerned(settings: TargetSettings, changed: Sequence[str] | None) -> bool:
    # Files that GitHub does not list may match any path.
    if not settings.paths or changed is None:
        return True
    return any(matches(settings.paths, path) for path in changed)


def over_budget(settings: TargetSettings, requests: JobRequests) -> str:
    """Return the budget that another request would exceed, as app.yaml has it; empty for none."""
    for budget, used in ((settings.budget, requests.all), (settings.budget_per_person, requests.by_person)):
        most = per_day(budget)
        if budget is not None and most is not None and used >= most:
            return budget
    return ""
