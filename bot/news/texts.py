"""Sentences around news in chat channels and issues, and errors of channels."""

DETAILS = "details"
MORE_ITEMS = "and {count} more"
MAYBE_POSTED_BEFORE = "This may be a duplicate: the bot does not know whether its last attempt arrived."

# -- what the audit log says --

QUEUED = "queued for {name}"
QUEUED_BEFORE = "already queued for {name}"
POSTED = "posted in {name}"
POSTED_BEFORE = "already posted in {name}"

# -- errors --

WEBHOOK_NEEDED = (
    "{variable} is not set, but {repository} names {place} below {key}.to in app.yaml; set it, or name another place"
)
WEBHOOK_NOT_SET = "{variable} is not set, so the bot cannot post in {name}: set it to a webhook's address, and restart."
CHANNEL_UNREACHABLE = "{name} did not answer ({problem})"
CHANNEL_ERROR = "{name} answered {status}"
CHANNEL_BUSY = "{name} is limiting our messages for now"
WEBHOOK_REMOVED = (
    "{name} no longer accepts messages at the webhook of {variable} ({reason}). The webhook or its channel may have "
    "been removed: create a new one, set {variable} to its address, and restart the bot."
)
MESSAGE_REFUSED = (
    "{name} refused a message ({reason}). {variable} must be the full address of a webhook of {name}. If it is, the "
    "message was invalid: please report this to the maintainers of this bot."
)
