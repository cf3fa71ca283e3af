"""Details of the problems that HTTP routes answer with (RFC 9457)."""

UNEXPECTED_ERROR = "An unexpected error occurred. The log has the details."
NUL_IN_ADDRESS = "An address cannot hold the character U+0000 (%00)."
METHOD_NOT_ALLOWED = "{method} is not allowed here; allowed: {allowed}."
NOT_FOUND = "There is nothing at this address. /api describes the API, and /api/v1/openapi.json does for programs."

# -- pages --

NO_PAGE = "There is nothing at this address. The address may be wrong, or the repository may not be public."
NOTHING_IN = "{repository} has nothing at this address: the name may be wrong, or nobody has sent results under it yet."
TOO_MANY_REQUESTS = "Too many requests came from your address. Try again in {seconds} s."
TOO_MANY_PAGES = "We are computing too many pages right now. Try again in a few seconds."
BAD_QUERY = "The parameter {name} cannot be {given}: {why}. Its meaning: {meaning}"
MISSING_QUERY = "The parameter {name} is missing. Its meaning: {meaning}"
WRONG_FORM = "its format is invalid"
UNKNOWN_QUERY = "Unknown parameter {name}. Available: {known}."
REPEATED_QUERY = "{name} is given more than once."
UNKNOWN_FORMAT = "format must be csv or json."

# -- the API --

API_GROUPS = {
    "/api/v1/repos": "Repositories",
    "/api/v1/labs": "Labs",
    "/api/v1/operate": "Operators",
    "/api": "Everything else",
    "/r/": "Files of a repository",
    "/": "The process",
}
"""The headings of the API reference, by the beginning of the routes' paths; the first that fits counts."""

INVALID_REPOSITORY = "This is not the owner and name of a repository."
DATABASE_UNAVAILABLE = "The database could not be read."
NOT_CONFIGURED = "This repository is not in app.yaml."

# -- webhooks --

MALFORMED_SIGNATURE = "{header} must be sha256= and 64 hexadecimal digits."
FORM_ENCODED = "The body is form-encoded. Set the webhook's content type on GitHub to application/json."
NOT_JSON = "The body is not a JSON object."
INVALID_GUID = "{header} is missing, or is not 1 to 64 printable characters without a space."
INVALID_EVENT = "{header} is missing, or is not 1 to 64 of a-z, 0-9 and _."
NOT_STORED = "The delivery could not be stored. You can safely send it again."

# -- bodies --

BODY_TOO_LARGE = "The body is larger than {most} bytes, the maximum here."
BODY_TOO_SLOW = "The body did not arrive within {seconds:.0f} seconds."
BODY_INCOMPLETE = "The connection ended before the whole body had arrived."
TOO_MANY_BODIES = "Too many large bodies are arriving at the same time. You can safely send this one again."

# -- who may ask --

NO_SIGNATURE = (
    "{header} is missing; a SHA-1 signature is not accepted. Set the webhook's secret on GitHub to one of those in "
    "GITHUB_WEBHOOK_SECRET."
)
WRONG_SIGNATURE = (
    "{header} does not match the body. The webhook's secret on GitHub must be one of those in GITHUB_WEBHOOK_SECRET."
)
NO_TOKEN = (
    "There is no public repository with this name here. For a private one send its token: "  # noqa: S105
    "Authorization: Bearer TOKEN. "
    "The operator of the bot creates one with `nightjar token create OWNER/NAME`."
)
INVALID_TOKEN = (
    "The token is unknown, revoked or expired. "  # noqa: S105
    "The operator of the bot creates a new one with "
    "`nightjar token create OWNER/NAME`."
)

# -- what links to GitHub say --

ON_GITHUB = {
    "tree/": "branch",
    "#issuecomment-": "comment",
    "#pullrequestreview-": "review",
    "#discussion_r": "review comment",
    "/checks": "checks",
    "/job/": "job",
    "actions/runs/": "workflow run",
    "runs/": "check run",
    "commit/": "commit",
}
"""What an address on GitHub leads to, by a part of it; the first that it has counts."""


def page_words(page: str) -> str:
    """Say what a page on GitHub shows, by its path below the repository's: a comment, or `#42`."""
    for part, words in ON_GITHUB.items():
        if part in page:
            return words
    return f"#{page.rpartition('/')[2]}" if page else ""
