"""What every mapping of app.yaml has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Keys(BaseModel):
    """A mapping of app.yaml: unknown keys are errors, types are not guessed, nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)
