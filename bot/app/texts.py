"""What operators read about running the bot: reasons of deliveries, and errors at the start."""

# -- why a delivery is ignored --

NO_HANDLER = "no feature uses {event}"
NO_REPOSITORY = "it is not about a repository"
NOT_CONFIGURED = "{repository} is not in app.yaml"
FEATURE_OFF = "the features that use it are off for this repository"
NOT_ACCEPTED = "no handler accepts it"

# -- plans --

NO_CONCLUDE_STAGE = "the plan of {handler} has data for a conclude stage, but the handler has none"
CONCLUDES_NOTHING = "the plan of {handler} after a failure has data for a conclude stage, but none runs after a failure"
RATE_LIMITED = "skipped: for an hour, GitHub's rate limit left no requests for commands of people without permission"

# -- serve, worker --

CANNOT_LISTEN = "cannot listen on {host}:{port}: {reason}; choose another address with --host and --port"
WORKER_ENDED = "the worker ended unexpectedly; see the log"

# -- a changed app.yaml --

CONFIG_NOT_IN_USE = "app.yaml has changed, but the last good one is still in use: {reason}"
FIRST_ERROR = "the first error is at {place}"
SEE_LOG = "see the log or /operate/state"

# -- redelivery --

READ_LATER = "the next sweep reads the rest of the deliveries"
LIST_TOO_SLOW = "the list took longer than {seconds:g} s"
LIST_TOO_LONG = "the list has more than {pages} pages"
CURSOR_GONE = "GitHub no longer knows where the last sweep was; reading from the newest delivery"

# -- database copy --

COPY_KINDS = "FROM must be sqlite:///PATH, and TO postgresql://…: for other copies use the tools of the database"
COPY_RUNS = "another copy into {name} runs; wait until it ends"
COPY_TARGET_IN_USE = (
    "{name} is in use: it has rows ({tables}). Stop the servers that use it, and copy into a new database"
)
COPY_SOURCE_CHANGED = (
    "a server has worked on the SQLite database since the copy into {name} was interrupted; copy into a new database"
)
COPY_COLUMNS = "the table {table} has columns that PostgreSQL's does not have: {columns}; use the same release for both"
COPY_DIFFERS = (
    "{name} has {copied} rows of {table}, and the SQLite database {expected}; copy into a new database, and start no "
    "server before that is done"
)
