"""Texts that operators read on their pages."""

PROCESS = "process {pid} on {host}"
CANNOT_PLAN = "GitHub or the database did not answer, so we could not compute the plan. Try again."
