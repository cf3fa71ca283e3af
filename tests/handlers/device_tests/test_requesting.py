"""What happens to a request for a target: budgets apply per target, person and day (UTC)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.results.settings.targets import TargetSettings
from handlers.device_tests.model import JobOrigin, Someone
from handlers.device_tests.requesting import JobRequest, answer_request
from handlers.device_tests.store import JobStore
from handlers.device_tests.targets import RequestTarget
from tests.devices.memory import MemoryStore
from tests.handlers.device_tests.cases import HUBOT, OCTOCAT, new_job

MIDNIGHT = datetime(2026, 11, 26, tzinfo=UTC).timestamp()
SETTINGS = TargetSettings(tier=2, budget="3/day", budget_per_person="2/day")


async def used_budget(store: JobStore, moment: float, person: Someone = HUBOT, name: str = "hexagon-v73") -> str:
    """Return the budget that prevents a request for another commit; empty if none does."""
    request = JobRequest(42, "f" * 40, JobOrigin.COMMAND, person, moment, approval_needed=False)
    answer = await answer_request(store, 7, request, RequestTarget("example-lab", name, SETTINGS))
    assert (answer.effect is None) == bool(answer.budget)
    return answer.budget


@pytest.mark.parametrize("moment", [MIDNIGHT, MIDNIGHT + 3600, MIDNIGHT + 86_399.9])
async def test_a_budget_is_used_up_until_midnight(moment: float) -> None:
    store = MemoryStore(lambda: moment)
    assert await used_budget(store, moment) == ""
    for number in range(2):
        await store.submit(new_job(str(number), sha=str(number) * 40, requested_at=moment), approval_needed=False)
    assert await used_budget(store, moment) == "2/day"
    assert await used_budget(store, moment, OCTOCAT) == "", "each person has a budget"
    assert await used_budget(store, moment, name="adreno") == "", "each target has a budget"
    await store.submit(new_job("2", sha="2" * 40, requested_at=moment, requested_by=OCTOCAT), approval_needed=False)
    assert await used_budget(store, moment, OCTOCAT) == "3/day"
    assert await used_budget(store, MIDNIGHT + 86_400) == "", "the budget is renewed the next day"
