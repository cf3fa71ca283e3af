"""Start the bot like `nightjar`, for a GitHub that does not limit writes, such as Enterprise Server by default.

github.com allows an installation 80 writes a minute and 500 an hour. With these limits, 5,000 commands at once would
take a day, and the bot's own time for them could not be measured.
"""

from __future__ import annotations

from functools import partial

from bot.app import serve
from bot.cli.main import main
from bot.github.limits import Allowance

PLENTY = 10_000_000
UNLIMITED = Allowance(
    writes_per_minute=PLENTY,
    writes_per_hour=PLENTY,
    rest_points_per_minute=PLENTY,
    graphql_points_per_minute=PLENTY,
    write_spacing=1e-6,
    write_burst=PLENTY,
)

if __name__ == "__main__":
    vars(serve)["run_until_stopped"] = partial(serve.run_until_stopped, allowance=UNLIMITED)
    main()
