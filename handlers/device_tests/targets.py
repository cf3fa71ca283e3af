"""Find the targets that accept requests, and those that a person names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.config.types import matches
from bot.core.nearest import nearest_names
from bot.core.titles import folded, tags_of
from bot.results.settings.targets import EVERY_PUSH, TargetSettings, per_day
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
    def aliases(self) -> frozenset[str]:
        """The names under which people request the target, in the form in which tags of titles are compared."""
        return frozenset(map(folded, (self.name, self.full_name, self.settings.label_of(self.name))))

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
        for lab, lab_settings in labs
        for name, settings in lab_settings.targets.items()
        if settings.takes_requests
    ]


def find_request_target(config: RepositoryConfig | None, lab: str, name: str) -> RequestTarget | None:
    """Return a target; None if app.yaml no longer has it, or it no longer accepts requests."""
    lab_settings = labs_of(config).get(lab) if config is not None else None
    settings = lab_settings.targets.get(name) if lab_settings else None
    return RequestTarget(lab, name, settings) if settings and settings.takes_requests else None


def named_targets(results: Results, names: Iterable[str]) -> NamedTargets:
    """Find the targets that names mean: TARGET means this target of every lab that has it, LAB/TARGET means one.

    The label of a target is a name too. Case does not matter.
    """
    accepting = request_targets(results)
    all_names = {
        form.casefold()
        for lab, settings in results.labs.items()
        for name in settings.targets
        for form in (name, f"{lab}/{name}")
    }
    targets: dict[str, RequestTarget] = {}
    unknown, nightly = list[str](), list[str]()
    for name in names:
        named = [target for target in accepting if folded(name) in target.aliases]
        targets |= {target.full_name: target for target in named}
        if not named:
            (nightly if name.casefold() in all_names else unknown).append(name)
    return NamedTargets(tuple(targets.values()), tuple(unknown), tuple(nightly))


def nearest_targets(name: str, targets: Sequence[RequestTarget]) -> list[str]:
    """Return the names of targets that are most like a name that no lab has, the most similar first."""
    return nearest_names(name, [target.full_name if "/" in name else target.name for target in targets])


def labeled_targets(targets: Iterable[RequestTarget], label: str) -> list[RequestTarget]:
    """Return the targets that have this label; the case does not matter, as on GitHub."""
    return [target for target in targets if target.settings.label_of(target.name).casefold() == label.casefold()]


def tagged_targets(targets: Iterable[RequestTarget], title: str) -> list[RequestTarget]:
    """Return the targets that a title has a tag for, as in `[hexagon-v73] Fix it` or `[test: hexagon] Fix it`."""
    tags = frozenset(map(folded, tags_of(title)))
    return [target for target in targets if tags & target.aliases] if tags else []


def pushed_targets(targets: Iterable[RequestTarget], changed: Sequence[str] | None) -> list[RequestTarget]:
    """Return the targets that test a push which changes these files; None: the files are unknown."""
    return [
        target for target in targets if target.settings.tier == EVERY_PUSH and _paths_match(target.settings, changed)
    ]


def _paths_match(settings: TargetSettings, changed: Sequence[str] | None) -> bool:
    # Files that GitHub does not list may match any path.
    if not settings.paths or changed is None:
        return True
    return any(matches(settings.paths, path) for path in changed)


def over_budget(settings: TargetSettings, requests: JobRequests) -> str:
    """Return the budget that another request would exceed, as app.yaml writes it; empty for none."""
    for budget, used in ((settings.budget, requests.all), (settings.budget_per_person, requests.by_person)):
        most = per_day(budget)
        if budget is not None and most is not None and used >= most:
            return budget
    return ""
