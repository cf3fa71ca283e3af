"""What commands print besides their results: messages, errors, warnings and the headers of tables."""

# -- every command --

INVALID_VALUE = "{value} must be {words}"
TWO_CONFIGS = "this folder has {names}; remove one, or name the file"
ENV_FILE_UNREADABLE = "{path} cannot be read: {reason}; make it readable for the user that runs this command"
ENV_FILE_TOO_LARGE = "{path} is larger than {most} KiB, the maximum; it should hold environment variables only"
ENV_FILE_LINE = "{path}:{line}: not a variable; write NAME=VALUE, or start the line with # for a comment"
ENV_FILE_UNENDED = "{path}:{line}: the value that begins here does not end; its last line needs {ending}"
DATABASE_AWAY = "the database does not answer ({kind})"

# -- check-config --

CONFIG_VALID = "{path}: valid; {count} configured"
REPOSITORY_FILE_VALID = "{path}: valid; not checked: whether app.yaml enables the features that it sets"
MENTIONS_SOMEBODY = (
    'note: @ci works, and so does /ci; GitHub notifies the person whose login is "ci" about each @ci. To choose, set '
    'mentions: ["/ci"], or another name'
)
CONFIG_WARNING = "{path}:{line}:{column}: warning: {warning}"
OWN_CONTEXT = "{place}.{key}: {name} is a status of this bot, which never counts as CI. Use a name that CI reports."

# -- deliveries, replay --

DELIVERY_HEADERS = ("RECEIVED", "DELIVERY", "EVENT", "SUBJECT", "STATE", "SUMMARY")
NO_DELIVERIES = "no deliveries"
NO_MATCHING_DELIVERIES = "no deliveries match"
ALL_IGNORED = "all deliveries were ignored; show them with --all"
ONE_OR_ALL_FAILED = "name one delivery by its GUID, or use --failed for all that failed"
PR_WITHOUT_REPOSITORY = "--pr needs --repo OWNER/NAME"
STEPS_DONE = "{state}: {done} of {count} steps done"
STILL_RUNNING = (
    "not done after {seconds} s; a running server continues the work, and `nightjar deliveries` shows the result"
)
TIME_SPAN_WORDS = "a time such as 45m, 2h or 3d"
NOTHING_FAILED = "nothing failed in that time"
FAILED_HEADERS = ("DELIVERY", "EVENT", "SUBJECT", "ERROR")
TO_REPLAY = "{count} to replay; run this again without --dry-run to replay them"
REPLAY_PROGRESS = "{queued} of {count} queued, {ended} done"
REPLAYED = "{count} replayed: {done} done, {failed} failed again, {waiting} not done yet"

# -- timer --

TIMER_HEADERS = ("REPOSITORY", "TIMER", "SCHEDULE", "LAST RUN", "OUTCOME", "NEXT RUN", "REASON")
NO_TIMERS = "app.yaml enables no feature that has a timer"

# -- doctor --

DATABASE_OK = "{name} answers"
NO_FILE_YET = "the file that DATABASE_URL names does not exist; `nightjar serve` creates it"
CORRECT_DATABASE = "correct DATABASE_URL, or start the database"

# -- token --

TOKEN_HEADERS = ("ID", "CREATED", "EXPIRES", "LAST USED", "NOTE")
NO_TOKENS = "no tokens; create one with `nightjar token create OWNER/NAME`"
NOT_CONFIGURED = "{path} does not list {name}, so a token for it would have no effect; add the repository first"
UNKNOWN_TOKEN = "no token has the ID {id}; `nightjar token list` shows the IDs"  # noqa: S105
SHOWN_ONCE = "The token is not shown again. Store it as the secret NIGHTJAR_TOKEN in your CI."
NO_LAB_TOKENS = "no tokens of labs; create one with `nightjar lab token create LAB`"
UNKNOWN_LAB = (
    "{path} has no lab {name} below results.labs of any repository, so a token for it would have no effect; add the "
    "lab first"
)
UNKNOWN_LAB_TOKEN = "no token of a lab has the ID {id}; `nightjar lab token list` shows the IDs"  # noqa: S105
FORM_WRITTEN = "wrote {path}"
FORM_NOT_WRITTEN = "cannot write {path}: {problem}"
LAB_LINES = "Add these lines to {path}, and let the server take them over (systemctl reload nightjar, or SIGHUP):"
LAB_KNOWN = "{path} has this lab and these targets."
FIRST_RUN = "On the lab's machine, in a checkout of the commit to test:"
WHICH_REPOSITORY = "name the repository with --repo OWNER/NAME; {path} has: {names}"
SHOWN_ONCE_LAB = "The token is not shown again. Store it as NIGHTJAR_LAB_TOKEN where the lab's agent runs."
REVOKED = "revoked {id}"
EXPIRED = "{moment} (expired)"
LIFETIME = "{value} must be a number of days from 1d to {most}d, or {never}"
LONG_NOTE = "must have at most {most} characters"

# -- backup, restore --

BACKUP_WRITTEN = "{target}: {size} bytes, checked"
RESTORED = "replaced {path} with {source}; start the server"

# -- ci decide --

NO_SOURCE = "none of --api, NIGHTJAR_URL, GITHUB_TOKEN and public_url in app.yaml is set"
INVALID_CONFIG = "could not read app.yaml ({fault})"
REPOSITORY_NOT_LISTED = "{path} does not list {repository}"
NO_REPOSITORY_NAMED = "name the repository: --repo OWNER/NAME"
NOT_A_PULL_REQUEST = "{value} must be the number of a pull request; leave it empty for other builds"
NOT_A_BRANCH = "{value} must be the name of a branch, as in main"
NOT_A_REF = "{value} {problem}"
BAD_GITHUB_URL = "GITHUB_API_URL {problem}"

# -- ci docker-images --

IMAGES_UNREADABLE = "{path} cannot be read ({reason}); name the file that lists the images with --file"
NOT_TEXT = "it is not text"
UNKNOWN_IMAGE = "{path} has no image {name}; available: {known}"
NO_IMAGES = "none"
INVALID_IMAGE = "{name} is {image} in {path}; write an image as NAMESPACE/NAME:TAG"
GAVE_UP = "{problem}; gave up after {tries} attempts"
PAUSE_TOO_LONG = "{problem}; it asks us to wait {seconds:.0f} s, which is too long"
IMAGE_NOT_WRITTEN = "{path} cannot be written ({reason})"

# -- ci local --

STEP_HEADERS = ("STEP", "PLACE", "COMMAND")
VARIABLE_HEADERS = ("VARIABLE", "VALUE", "REASON")
COMPARED_WITH = "{branch} at {sha}, compared with {base}:"
NOTHING_TO_COMPARE = "{branch} at {sha}:"
NO_BRANCH = "no branch"
ON_THIS_MACHINE = "this machine"
IN_AN_IMAGE = "{image} ({engine})"
NO_ENGINE = "this machine, not {image}: no docker or podman"
NO_STEPS = "no steps; name them below ci: steps: in {path}"
NO_SETTINGS_FILE = (
    "this checkout has no {own}, and there is no {path}; name the project's steps below ci: steps: in one of them"
)
UNKNOWN_STEP = "there is no step {name}; available: {known}"
IMAGE_WITHOUT_STEP = "ci.images names {name}, which is no step; available: {known}"
NO_GIT = "git cannot be started ({reason}); install it"
NO_CHECKOUT = "this folder is not in a checkout with a commit (git: {reason})"
NO_BASE_COMMIT = "git knows no commit {base}; name a branch, a tag or a commit of this checkout"
NO_BASE_BRANCH = "neither upstream nor origin has a default branch here to compare with, and --base names none"
NO_COMMON_COMMIT = "HEAD and {base} have no commit in common here"
CHANGES_UNREADABLE = "git could not list the changed files"

# -- database copy --

COPIED_TABLE = "{table}: {rows}"
COPIED = (
    "copied {rows} of {tables} tables, and compared their numbers; set DATABASE_URL to the new database and "
    "start the server"
)
