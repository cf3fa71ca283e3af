"""The parameters of the simulation: numbers of labs, targets and pull requests, their behavior, and rates of faults."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from bot.app.load import parse_config
from bot.config import Config
from handlers.device_tests.model import Someone

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
BEGIN = 1_800_000_000.0
REPOSITORIES = (("octocat/compiler", 7, 0.8), ("octocat/runtime", 8, 0.2))
"""Name, number, and share of the pull requests. Both are of one installation, and share its budget of writes."""
TIERS = ((1, 0.1), (2, 0.5), (3, 0.4))
HOURS = (2, 2, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 7, 8, 9, 9, 8, 7, 5, 4, 3, 3, 3, 2)
"""How many pull requests are opened in each hour of a day, relative to each other."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a simulation. `tick` is the interval of the sweep, in seconds."""

    labs: int
    targets: int
    pulls_a_day: int
    days: int
    seed: int = 14
    tick: float = 15.0


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of events: shares, unless the docstring says otherwise."""

    writers: float = 0.5
    """The share of people with the write role."""
    approved: float = 0.85
    """The share of waiting requests that are approved."""
    tier_1: float = 0.6
    """Targets of tier 1 whose files a pull request changes, on average."""
    requested: float = 0.08
    """Pull requests on which somebody asks for targets of tier 2."""
    every_target: float = 0.001
    """Pull requests on which somebody asks for all targets."""
    pushes: float = 0.6
    """Further pushes to a pull request, on average."""
    cancelled: float = 0.02
    lost_call: float = 0.02
    """Calls of a lab that do not arrive; as many again are carried out, and their answers are lost."""
    agent_dies: float = 0.03
    """Tests during which the agent dies. It restarts a quarter of an hour later, without any state."""
    never_back: float = 0.002
    """Tests during which the device breaks, for two days."""
    partition: float = 0.02
    """Tests during which the lab is cut off for five to thirty minutes."""
    device_fails: float = 0.03
    """Tests that the lab reports as failed."""
    too_long: float = 0.005
    """Tests that never end: the deadline ends them."""
    raced: float = 0.1
    """Changes to a job during which another replica hands out jobs of the same lab."""
    sweep_away: float = 1.0
    """Times a day that no replica sweeps, for one to six hours."""
    config_changed: float = 0.3
    """Times a day that app.yaml changes: some targets are removed, and come back a day later."""
    write_fails: float = 0.005
    """Writes of check runs of which every try fails."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target of a lab. `repository` is the one that has it in app.yaml."""

    lab: str
    name: str
    tier: int
    slots: int
    sticky: bool
    minutes: float
    repository: str


class World:
    """Labs, targets and people."""

    def __init__(self, size: Size, chance: random.Random) -> None:
        tiers = [tier for tier, share in TIERS for _ in range(round(share * size.targets))]
        chance.shuffle(tiers)
        self.targets = [
            Target(
                lab=f"lab-{number % size.labs}",
                name=f"target-{number}",
                tier=tier,
                slots=chance.choice((2, 3, 4)) if tier == 1 else chance.choice((1, 1, 2)),
                sticky=tier == 2 and chance.random() < 0.2,
                minutes=chance.choice((6.0, 10.0, 15.0, 25.0)),
                repository=REPOSITORIES[0][0] if chance.random() < 0.9 else REPOSITORIES[1][0],
            )
            for number, tier in enumerate(tiers)
        ]
        self.people = [Someone(number + 1, f"person-{number + 1}") for number in range(150)]

    def config(self, removed: frozenset[str] = frozenset()) -> Config:
        """Return app.yaml without some targets."""
        repositories = {}
        for name, _, _ in REPOSITORIES:
            labs: dict[str, dict[str, object]] = {}
            for target in self.targets:
                if target.repository == name and target.name not in removed:
                    keys = {"tier": target.tier, "slots": target.slots, "sticky": target.sticky, "timeout": "1h"}
                    labs.setdefault(target.lab, {})[target.name] = keys
            results = {"bucket": "results", "labs": {lab: {"targets": targets} for lab, targets in labs.items()}}
            repositories[name] = {"results": results} if labs else {}
        return parse_config(json.dumps({"repositories": repositories}).encode(), "app.yaml")
