"""The keys below `labs.LAB.webhook`: where the bot says that a job waits for a lab."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.types import EncryptedAddress, Says

VariableName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,63}$"),
    Says("the name of an environment variable, as in EXAMPLE_LAB_WEBHOOK_SECRET"),
]


class LabWebhook(Keys):
    """A signed message to the lab for each job that waits. The lab claims the job then."""

    url: EncryptedAddress = Field(
        description="Where to send it. The bot follows no redirects.",
        examples=["https://lab.example.org/nightjar"],
    )
    secret_env: VariableName = Field(
        description=(
            "The environment variable of the bot with the secret, at least 16 characters. Messages are signed with it "
            "as GitHub signs webhooks (`X-Hub-Signature-256`)."
        ),
        examples=["EXAMPLE_LAB_WEBHOOK_SECRET"],
    )
    allow_private: bool = Field(
        default=False,
        description="Whether the address may be in a private network or on this machine.",
        examples=[True],
    )
