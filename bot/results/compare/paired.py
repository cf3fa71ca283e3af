"""The same tests on a simulator and on the device that it simulates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.results.settings.results import Results


@dataclass(frozen=True, slots=True)
class PairedTargets:
    """The targets that run the same tests as one target, as LAB/TARGET: its simulators, and the device it simulates."""

    simulators: frozenset[str] = frozenset()
    device: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Return all of them."""
        return self.simulators | {self.device} if self.device else self.simulators

    def passes(self, targets: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Return the simulators, and the device or nothing, that are among targets on which a test passes."""
        simulators = tuple(target for target in targets if target in self.simulators)
        return simulators, self.device if self.device in targets else ""


UNPAIRED = PairedTargets()


def paired_targets(results: Results | None, name: str) -> PairedTargets:
    """Return the targets that run the same tests as a target, LAB/TARGET: its simulators and its device."""
    return all_pairs(results).get(name, UNPAIRED)


def all_pairs(results: Results | None) -> dict[str, PairedTargets]:
    """Return the simulators and the device of each target that has some, as LAB/TARGET."""
    labs = results.labs.items() if results else ()
    devices = {
        f"{lab}/{target}": settings.simulates
        for lab, lab_settings in labs
        for target, settings in lab_settings.targets.items()
        if settings.simulates
    }
    simulators: dict[str, set[str]] = {}
    for simulator, device in devices.items():
        simulators.setdefault(device, set()).add(simulator)
    return {
        name: PairedTargets(frozenset(simulators.get(name, ())), devices.get(name, ""))
        for name in (*devices, *simulators)
    }
