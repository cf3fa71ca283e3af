"""The key `slow_tests`: when CI runs a pull request's slow tests, and who may ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Duration, Pattern, Role, Shared, StatusContext
from bot.core.schedule import Weekly

PROPOSED_AT = Weekly(0, "05:00", "UTC")
"""Before the working day of most people, and when few nightly runs are under way."""
TIMER = "slow-set"
BRANCH = "nightjar/slow-tests"
"""The branch of the pull request."""
LaterLevel = Literal["nightly", "release"]


class SlowTests(Keys):
    """`@ci run slow tests`: slow tests run for a pull request when someone asks, and always on some branches."""

    status: StatusContext = Field(
        default="ci/slow-tests",
        description="Context of the commit status that shows whether slow tests are on, and why.",
        examples=["ci/slow-tests"],
    )
    branches: Shared[tuple[Pattern, ...]] = Field(
        default=("main",),
        description="Branches that always run everything: pushes to them, and pull requests from them.",
        examples=[["main", "release/*"]],
    )
    levels: Shared[Mapping[LaterLevel, tuple[Pattern, ...]]] = Field(
        default={"nightly": ("nightly",)},
        description=(
            "Branches whose commits run tests of a later level than `main`: `nightly`, `release`. Tests have a level "
            "by `@pytest.mark.level`."
        ),
        examples=[{"nightly": ["nightly"], "release": ["release/*"]}],
    )
    allow: Shared[tuple[Role, ...]] = Field(
        default=("author", "triage"),
        min_length=1,
        description=(
            "Who may use the command: the pull request's author (`author`), and people with one of these "
            "roles or a higher one."
        ),
        examples=[["author", "triage"]],
    )
    rerun: Shared[tuple[Pattern, ...]] = Field(
        default=("*",),
        description=(
            "Workflows and status contexts to rerun if slow tests are switched on after CI has ended. An "
            "empty list: none."
        ),
        examples=[["*/pr-head"]],
    )
    budget: Duration | None = Field(
        default=None,
        description=(
            "How long the tests of a pull request may take, on all targets together. Once a week, the bot opens or "
            "updates a pull request that marks tests as slow, or unmarks them, to keep within it. Needs `results`, and "
            "write access to contents and pull requests."
        ),
        examples=["30m"],
    )

    @property
    def schedule(self) -> Weekly | None:
        """Return when the slow tests are proposed, None for never."""
        return None if self.budget is None else PROPOSED_AT


SLOW_TESTS = ConfigKey(
    "slow_tests",
    SlowTests,
    description="`@ci run slow tests` enables slow tests for a pull request.",
    example={"status": "ci/slow-tests", "branches": ["main"]},
    position=10,
    shared=True,
    on_by_default=True,
    timer=TIMER,
    contexts=lambda slow_tests: (slow_tests.status,),
    branches=lambda slow_tests: (BRANCH,) if slow_tests.budget else (),
)
KEYS = (SLOW_TESTS,)
