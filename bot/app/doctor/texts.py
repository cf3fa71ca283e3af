"""Results of `nightjar doctor` and their remedies."""

CHECK_CRASHED = "the check failed with {kind}"
SEE_LOG = "this is a bug in the bot; see the log"
CHECK_FAILS = "the check {what} fails; `nightjar doctor` and the log say why"
"""Shown by `/readyz`, which is public: it must not name a repository, bucket or server."""
NEEDS_MET = "complete"

# -- GitHub --

GITHUB_UNREACHABLE = "could not ask GitHub: {reason}"
CHECK_API_URL = "check GITHUB_API_URL and the connection of this machine; https://www.githubstatus.com reports outages"
SET_APP_ID = "set GITHUB_APP_ID to the ID on the App's page on GitHub, and GITHUB_API_URL to the GitHub with that App"
SET_KEY = (
    "set GITHUB_APP_ID and GITHUB_PRIVATE_KEY of the same App; generate a new key on the App's page on GitHub under "
    "Private keys"
)
APP_OK = "{slug}, ID {app}"
KEY_OK = "GitHub accepts it"
CLOCK_OK = "it agrees with GitHub's"
SYNCHRONIZE_CLOCK = "synchronize this machine's clock (NTP)"

APP_LACKS_PERMISSIONS = "the App lacks the permissions {missing}"
ADD_PERMISSIONS = (
    "add them on the App's page on GitHub under Permissions & events; then ask an owner of each account to accept them"
)
NOT_ACCEPTED = "{repository}: its owner has not accepted the permissions {missing}"
ACCEPT = "ask an owner of the account to accept them on the installation's page on GitHub"
APP_LACKS_EVENTS = "the App is not subscribed to {missing}"
SUBSCRIBE = "select them on the App's page on GitHub under Permissions & events, Subscribe to events"

NO_WEBHOOK_URL = "the App has no webhook URL, so GitHub sends no events"
SET_WEBHOOK_URL = "set it on the App's page on GitHub to https://YOUR-HOST/webhook, and make the webhook active"
OTHER_PATH = "GitHub sends webhooks to {url}, which does not end with /webhook"
OTHER_HOST = "GitHub sends webhooks to {url}, but public_url in app.yaml is {public}"
CORRECT_WEBHOOK_URL = "correct the webhook URL on the App's page on GitHub"
FORM_ENCODED = "GitHub sends webhooks as form data"
SET_CONTENT_TYPE = "set the webhook's content type to application/json on the App's page on GitHub"
NO_SECRET = "the webhook has no secret, so the bot refuses every delivery"  # noqa: S105
SET_SECRET = "set the webhook secret on the App's page on GitHub to the value of GITHUB_WEBHOOK_SECRET"  # noqa: S105
TLS_NOT_VERIFIED = "GitHub does not verify the certificate of the webhook URL"
ENABLE_TLS = "enable SSL verification on the App's page on GitHub"
WRONG_SECRET = "the newest delivery was refused: its signature does not match GITHUB_WEBHOOK_SECRET"  # noqa: S105
UNEXPECTED_STATUS = "the newest delivery was answered with {status}, which a working bot never sends"
SEE_DELIVERIES = "see Recent Deliveries under Advanced on the App's page on GitHub, and check the proxy before the bot"
HOOK_OK = "{url}, application/json"

NOT_INSTALLED = "{repository}: the App is not installed on it, or it does not exist"
INSTALL = "install the App on it, or correct its name in app.yaml"
PATTERN_NOT_INSTALLED = "{pattern}: the App is not installed on this account, so no repository matches"
INSTALL_ON_ACCOUNT = "install the App on the account, or correct the pattern in app.yaml"
SUSPENDED = "{repository}: installation {installation} is suspended{by}, so its jobs wait, for three days at most"
SUSPENDED_BY = " by {login}"
UNSUSPEND = (
    "unsuspend it in the way in which it was suspended: an owner of the account on the installation's page on GitHub, "
    "or the App's owner with the REST API; if GitHub did it, contact GitHub Support"
)
RENAMED = "{repository}: it is now called {now} on GitHub"
RENAME = "change its name in app.yaml; until then the bot finds it by its ID"
TIMERS_STOPPED = "{repository}: {reason}, so its timers are stopped"
REMOVE_OR_RESTORE = "remove it from app.yaml, or restore it on GitHub"
INSTALLED = "the App is installed on {count}"
NO_REPOSITORIES = "app.yaml lists no repository"

# -- buckets and queues --

NO_BUCKETS = "app.yaml has none"
FOLDER_OK = "labs upload to the folder beside the database, which has space"
FREE_SPACE = "free space on the disk of the database, or name a bucket (results.bucket)"
BUCKETS_OK = "{names} can be listed"
MANY_OBJECTS = (
    ". In {names}, the bot lists 10,000 objects or more again and again: set results.queue to an SQS queue "
    "(docs/hardware-results.md), so that it finds runs within seconds and lists rarely"
)
QUEUES_OK = "; {queues} can be read"
QUEUE = "queue {queue}"
SEE_BUCKET_GUIDE = "docs/hardware-results.md has the policies for the bot and labs"
CHECK_BUCKET = "check AWS_ENDPOINT_URL and this machine's connection; the bot retries by itself"

# -- Jenkins --

NO_JENKINS = "app.yaml has none"
JENKINS_OK = "credentials accepted by {servers}"
NO_CREDENTIALS = "app.yaml has a Jenkins server, but JENKINS_USER and JENKINS_TOKEN are not set"
SET_CREDENTIALS = "set them to a Jenkins user with permission to build the jobs, and an API token of that user"
LOGIN_REFUSED = "{server} refuses JENKINS_USER ({status})"
RENEW_TOKEN = "grant that user the permission Overall/Read, and set JENKINS_TOKEN to a valid API token"  # noqa: S105
JENKINS_UNREACHABLE = "{server} does not answer ({problem})"
NOT_JENKINS = "{server} answered {status}, which Jenkins never sends"
CHECK_JENKINS = "check the address in app.yaml under rerun: jenkins:, and the connection of this machine"

# -- sign-in on the pages --

SIGN_IN_IS_OFF = "off, so the pages show public repositories only"
OPERATORS_CANNOT = "app.yaml names operators, but nobody can sign in"
SET_SIGN_IN = "set GITHUB_CLIENT_ID, GITHUB_CLIENT_SECRET and SESSION_SECRET"
CLIENT_REFUSED = "GitHub refuses GITHUB_CLIENT_ID or GITHUB_CLIENT_SECRET"
RENEW_CLIENT = "set both to those on the App's page on GitHub; generate a new client secret there"
GITHUB_SILENT = "could not ask GitHub: {reason}"
CHECK_GITHUB = "check GITHUB_API_URL and the connection of this machine"
NOT_ENCRYPTED_PAGES = "public_url is {url}, and browsers store sessions over https only"
USE_HTTPS = "serve the pages over https, and set public_url to that address"
SIGN_IN_OK = "GitHub accepts the client ID and secret; sign-in returns to {callback}"
THIS_MACHINE = "this machine only, because public_url is not set"
