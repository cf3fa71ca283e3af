"""A label of ours on a pull request, added while its condition holds and removed when it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bot.core.events import Payload
from bot.effects import texts
from bot.github.access import ISSUES, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.errors import is_not_found
from bot.plan.effect import Applied, EffectContext

LABELS = "/repos/{+repo}/issues/{number}/labels"
ONE_LABEL = "/repos/{+repo}/issues/{number}/labels/{label}"


@dataclass(frozen=True, slots=True)
class EnsureLabel:
    """Add one label to a pull request, or remove it; leave all other labels alone.

    GitHub creates a label that the repository does not have yet:
    https://docs.github.com/rest/issues/labels#add-labels-to-an-issue
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    label: str
    on: bool

    @property
    def effect_key(self) -> str:
        """The pull request and the label."""
        return f"label:{self.number}:{self.label}"

    async def apply(self, context: EffectContext) -> Applied:
        """Check the label, then add or remove it if necessary."""
        url_vars, page = {"repo": context.repository.full_name, "number": str(self.number)}, pull_on_github(self.number)
        present = [Payload(label).text("name") async for label in context.github.getiter(LABELS, url_vars=url_vars)]
        # GitHub ignores the case of a label's name.
        is_on = self.label.casefold() in (name.casefold() for name in present)
        if is_on == self.on:
            return Applied(texts.LABEL_SAME, changed=False, page=page)
        if self.on:
            await context.github.post(LABELS, url_vars=url_vars, data={"labels": [self.label]})
            return Applied(texts.LABEL_ADDED.format(label=self.label), page=page)
        try:
            await context.github.delete(ONE_LABEL, url_vars={**url_vars, "label": self.label})
        except Exception as error:
            if not is_not_found(error):  # somebody removed it first
                raise
        return Applied(texts.LABEL_REMOVED.format(label=self.label), page=page)
