"""The keys below `http`: limits for clients of the HTTP API."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.config.keys import Keys
from bot.config.types import Says


class Http(Keys):
    """Limits on connections, bodies and anonymous requests, which apply before the bot knows who a client is."""

    megabytes_in_flight: Annotated[
        int, Field(ge=32, le=4096), Says("a whole number from 32 (the largest body is 25 MiB) to 4096")
    ] = Field(
        default=64,
        description=(
            "Memory for bodies of webhooks that are not stored yet, in MiB. At the limit the oldest unfinished "
            "body gets 503, and the bot asks GitHub for it later."
        ),
        examples=[64],
    )
    connections: Annotated[int, Field(ge=16, le=65_536), Says("a whole number from 16 to 65536")] = Field(
        default=1024,
        description=(
            "Open connections, at most half of the process's file descriptors. At the limit a new "
            "connection replaces an idle one."
        ),
        examples=[1024],
    )
    anonymous_percent: Annotated[int, Field(ge=1, le=50), Says("a whole number from 1 to 50")] = Field(
        default=5,
        description=(
            "Percent of an installation's hourly GitHub quota for requests to `/api/v1` without a token. "
            "Above it, the API answers from memory."
        ),
        examples=[5],
    )
    pages_per_minute: Annotated[int, Field(ge=10, le=100_000), Says("a whole number from 10 to 100000")] = Field(
        default=300,
        description="Dashboard pages that one address may request per minute. Above that, it gets 429.",
        examples=[300],
    )
    proxies: Annotated[int, Field(ge=0, le=5), Says("a whole number from 0 to 5")] = Field(
        default=0,
        description=(
            "Reverse proxies in front of the bot that append the client's address to `X-Forwarded-For`. The limit "
            "on pages applies to that address; with 0, to the address that connects."
        ),
        examples=[1],
    )
