"""What operators read about running the bot: reasons of deliveries, and errors at the start."""

# -- why a delivery is ignored --

NO_HANDLER = "no handler wants {event}"
NO_REPOSITORY = "it is not about a repository"
NOT_CONFIGURED = "{repository} is not in app.yaml"
FEATURE_OFF = "the features that want it are off for this repository"
NOT_ACCEPTED = "no handler accepts it"

# -- plans --

NO_CONCLUDE_STAGE = "a plan of {handler} has data for a conclude stage, but the handler has no such stage"
CONCLUDES_NOTHING = "the plan of {handler} after a failure has data for a conclude stage, and no such stage follows it"
RATE_LIMITED = "skipped: the rate limit of GitHub leaves no requests for commands of people without permission"

# -- serve, worker --

CANNOT_LISTEN = "cannot listen on {host}:{port}: {reason}; choose another address with --host and --port"
WORKER_ENDED = "the worker ended unexpectedly; see the log"

# -- redelivery --

NOT_READ_FURTHER = "older deliveries are not read"
LIST_TOO_SLOW = "the list took longer than {seconds:g} s"
