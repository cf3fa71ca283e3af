"""What a feature is: one value that names everything that the program takes from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.commands.dialogue import CommandFunction
from bot.commands.spec import CommandSpec
from bot.engine.records import Record
from bot.plan.effect import Effect
from bot.plan.handler import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Everything of one feature; `bot.app.features` joins all of them.

    `config` names its keys of app.yaml, `effects` the kinds of effects that it adds, `sections` the sections of the
    sticky comment that show something about a head, and `records` the kinds of durable state.
    """

    name: str
    config: tuple[str, ...] = ()
    router: Router = field(default_factory=Router)
    commands: tuple[tuple[CommandSpec, CommandFunction], ...] = ()
    effects: tuple[type[Effect], ...] = ()
    sections: tuple[str, ...] = ()
    records: tuple[Record[Any], ...] = ()
