"""How likely each commit of a range is to have broken a test, before any run. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

UNLIKELY = 0.02
"""The weight of a commit that should not change what a test does; any other commit has the weight 1."""


@dataclass(frozen=True, slots=True)
class CommitTraits:
    """What is known of a commit without a run: whether it touches only docs, or only paths of other targets.

    `reverts` is the position of an earlier commit of the range that it reverts.
    """

    only_docs: bool = False
    only_other_targets: bool = False
    reverts: int | None = None


def prior_of(commits: Sequence[CommitTraits]) -> list[float]:
    """Return a probability for each commit of the range; together 1.

    The test fails at the end of the range. So a commit that is reverted within the range is an unlikely culprit.
    """
    weights = [UNLIKELY if commit.only_docs or commit.only_other_targets else 1.0 for commit in commits]
    for position, commit in enumerate(commits):
        if commit.reverts is None or not 0 <= commit.reverts < position:
            continue
        weights[commit.reverts] *= UNLIKELY
    total = sum(weights)
    return [weight / total for weight in weights]
