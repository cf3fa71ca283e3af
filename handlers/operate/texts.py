"""What operators read on their pages."""

UNKNOWN_DELIVERY = "No delivery of this GUID is stored here."
PROCESS = "process {pid} on {host}"
CANNOT_PLAN = "GitHub or the database did not answer, so the plan could not be made. Try again."
