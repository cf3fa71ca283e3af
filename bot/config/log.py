"""The keys below `log`: which deliveries get a line although they need no attention."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from bot.config.keys import Keys


class Log(Keys):
    """What the log says."""

    deliveries: Literal["wanted", "all"] = Field(
        default="wanted",
        description=(
            "Which deliveries get a line in the log: those that a feature uses (`wanted`), or `all`. The others "
            "are counted in `nightjar_deliveries_total` either way, and `nightjar deliveries --all` lists them."
        ),
        examples=["all"],
    )


LOG: Any = Field(default=Log(), description="What the log says.", examples=[{"deliveries": "all"}])
"""The field of app.yaml."""
