"""Write the agent's log, so that no text from outside can pass for a line of the agent or of the CI system."""

from __future__ import annotations

import logging
import os
import secrets

from nightjar_formats.terminal import escape_controls


class AgentFormatter(logging.Formatter):
    """Starts each further line of a message with a bar, and lets GitHub Actions see no workflow command in it.

    The runner obeys lines that begin with `::`, and `##[` anywhere in a line.
    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a message."""
        first, *more = (escape_controls(line).replace("##[", "## [") for line in super().format(record).splitlines())
        more = [f"| {line}" for line in more]
        if more and os.environ.get("GITHUB_ACTIONS"):
            token = secrets.token_hex(16)
            more = [f"::stop-commands::{token}", *more, f"::{token}::"]
        return "\n".join([first, *more])
