"""What people read who set the bot up in a browser."""

# -- in the terminal --

OPEN_ADDRESS = """\
Nightjar has no credentials yet. Open this address to set it up:

    {address}

The address works once. If your browser runs on another machine, forward the port first:
ssh -L {port}:127.0.0.1:{port} USER@THIS-MACHINE
"""
CONTINUE_SETUP = """\
{env} has the App's credentials, and {config} does not exist yet. Open this address to continue the set-up:

    {address}
"""
NEW_ADDRESS = """\
Someone opened the address again. To continue in that browser, open this one:

    {address}
"""
SETUP_HOST = (
    "To set the App up in a browser, run `nightjar serve` without --host: set-up mode listens on 127.0.0.1 only. Add "
    "--remote-setup to set up on {host} as well."
)

# -- what a person entered --

NO_PUBLIC_URL = "Enter the address at which GitHub reaches this bot, as in https://ci.example.org."
BAD_PUBLIC_URL = "The public address {problem}."
NOT_HTTPS_PUBLIC_URL = "The public address must start with https://: GitHub sends webhooks over the internet."
UNREACHABLE_PUBLIC_URL = (
    "GitHub cannot reach {host}: it is an address of this machine or of a private network. Enter a public address, or "
    "the address of a tunnel."
)
BAD_GITHUB_URL = "The address of GitHub {problem}. For GitHub Enterprise, enter it as in https://github.example.com."
GITHUB_URL_HAS_PATH = "must end after the host: no /{path}"
BAD_ORGANIZATION = (
    "{name} cannot be the name of an organization. Enter the name in its address: octo-org for "
    "https://github.com/octo-org."
)

PROBE_FAILED = (
    "We could not reach this bot at its public address ({reason}). Start the tunnel or the reverse proxy, and check "
    "the address. If your network does not let this machine use its own public address, you may continue."
)
PROBE_OTHER = (
    "Something else than this bot answers at the public address (status {status}). Check the address, and where the "
    "tunnel or the reverse proxy leads."
)
LAB_INCOMPLETE = "Enter the name of the lab and at least one target."
NO_SUCH_REPOSITORY = "app.yaml does not name {repository} below repositories."

# -- who may set up --

WRONG_HOST = (
    "Set-up mode answers only at the address that `nightjar serve` printed. Open that address in your browser, not "
    "another name for this machine."
)
NO_SESSION = (
    "Open the address that `nightjar serve` printed in its terminal. If GitHub has just sent you here, the set-up that "
    "you started has ended: delete the new App on GitHub, in your settings under Developer settings, GitHub Apps. Then "
    "start again."
)
ADDRESS_USED = (
    "This address works only once and was already opened. `nightjar serve` has printed a new one in its terminal."
)
BAD_FORM = "This form belongs to another set-up. Go back, reload the page, and press the button again."

# -- files --

ENV_EXISTS = (
    "{path} exists, and set-up never overwrites it. Restart `nightjar serve` to use it. To create another App, move "
    "the file away first."
)
CONFIG_EXISTS = "{path} exists now, and set-up never overwrites it. Reload the page to continue with that file."
CANNOT_WRITE = (
    "Cannot write {path}: {reason}. Make the folder writable for the user that runs `nightjar serve`, or name another "
    "file with --env-file and --config. Then reload this page."
)
CONFIG_TOO_LARGE = "The text is larger than {most} KiB, the maximum."

# -- what GitHub answers --

NOT_BEGUN_HERE = (
    "This page belongs to a set-up that has ended or was started elsewhere, so we did not fetch the App's secrets. If "
    "GitHub has just created an App, delete it on GitHub, in your settings under Developer settings, GitHub Apps. Then "
    "start again."
)
CODE_REFUSED = (
    "GitHub does not accept the code: it is older than an hour, or was used before. Without it we cannot fetch the "
    "App's secrets. Delete the App at {apps}, then start again."
)
GITHUB_AWAY = (
    "We could not fetch the App's secrets from GitHub ({reason}). Reload this page to try again; the code is valid for "
    "an hour. If GitHub then refuses it, delete the App at {apps} and start again."
)
ODD_CONVERSION = (
    "GitHub answered without {what}, so there is nothing to store. Check the address of GitHub, delete the App at "
    "{apps}, and start again."
)
SECRETS_NOT_STORED = (
    "The App exists, but we could not store its secrets: writing {path} failed ({reason}). GitHub shows them only "
    "once. Delete the App at {apps}, make the folder writable, and start again."
)
INSTALLATIONS_UNKNOWN = "We could not ask GitHub where the App is installed: {reason}. This page retries by itself."

# -- webhooks --

NOT_SERVING_YET = "Nightjar is being set up. It asks GitHub for this delivery again once it runs."

APP_DESCRIPTION = "Lets contributors control CI from pull requests, and publishes results of hardware labs."
APP_NAME = "Nightjar CI"
APP_NAME_FOR = "Nightjar for {organization}"
CONFIG_HEADER = "# Written by Nightjar's set-up. docs/configuration.md describes every key.\n"
ENV_HEADER = """\
# Written by Nightjar's set-up for the App {name} ({page}).
# These are secrets: only the user that runs Nightjar should be able to read this file.
"""
INTERRUPTED = """\
# Nightjar stopped while it stored the secrets of a new App. If this file has no more lines, they are lost:
# GitHub shows them only once. Delete the App at
# {apps}
# and set up again.
"""
MORE_REPOSITORIES = "# The App is installed on {repositories}; add each that the bot should work in.\n"
NOT_ARRIVED = "none has arrived yet"
