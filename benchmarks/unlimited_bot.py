"""Start the bot like `nightjar`, for a GitHub that does not limit writes, such as Enterprise Server by default.

github.com allows an installation 80 writes a minute and 500 an hour. With these limits, 5,000 commands at once would
take a day, and the bot's own time for them could not be measured.

Each booking of a write reads the bookings of the last hour. github.com's limits allow at most 450; without limits there
would be thousands, and reading them would cost more than all else that the bot does. So here no budget has more than
that: after `WRITES_PER_HOUR` writes, an installation gets a new one.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from bot.app import serve
from bot.cli.main import main
from bot.engine.budget import WriteBudget, WritePace
from bot.engine.sql.transactions import Connector
from bot.github.limits.ledger import WRITES_PER_HOUR, Allowance

PLENTY = 10_000_000
UNLIMITED = Allowance(
    writes_per_minute=PLENTY,
    writes_per_hour=PLENTY,
    rest_points_per_minute=PLENTY,
    graphql_points_per_minute=PLENTY,
    write_spacing=1e-6,
    write_burst=PLENTY,
)


class RenewedBudget(WriteBudget):
    """A budget of writes that begins again after `WRITES_PER_HOUR` writes."""

    def __init__(self, connector: Connector) -> None:
        super().__init__(connector)
        self._booked: Counter[str] = Counter()

    async def book(self, name: str, pace: WritePace, patience: float) -> float:
        """Book in the newest budget of a name."""
        self._booked[name] += 1
        return await super().book(f"{name}/{self._booked[name] // WRITES_PER_HOUR}", pace, patience)


if __name__ == "__main__":
    vars(serve)["WriteBudget"] = RenewedBudget
    vars(serve)["run_until_stopped"] = partial(serve.run_until_stopped, allowance=UNLIMITED)
    main()
