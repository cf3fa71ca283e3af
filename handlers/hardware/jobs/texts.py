"""Every sentence about jobs for devices."""

from __future__ import annotations

# Errors of the store
CONTENDED = "other processes changed the job each time that we tried"
UNKNOWN_JOB = "there is no job {id} of this lab"
