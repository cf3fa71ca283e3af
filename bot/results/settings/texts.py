"""Errors about the keys of results: what is wrong, and what is allowed."""

LONG_TEST = "is too long; it must be 3d or less, because GitHub ends check runs that stay open for two weeks"
NAMES_ONLY = "must have only names as items; put a number in quotes, and write keys of targets as a mapping"
PLACEHOLDER_IN_QUOTES = "must not have {written} in quotes: the value is already quoted"
QUOTED_FOR_ONE_SHELL = (
    "must not pass {written} to {word}, which starts a second shell: there the name of a test could run as a command. "
    "Put {word} into a script of the lab"
)
STAR_AT_END = "can have a * only at its end, after . or / or :, as in kernel.poll.*"
BARE_STAR = "from must have text before the *, as in kernel.poll.*: a * alone matches every test"
BOTH_WITH_STAR = "from and to must both end with *, or neither"
RENAMED_TO_ITSELF = "from and to must differ"
RENAMED_TWICE = "must have each from only once; {name} is there twice, remove one of them"
RENAMED_IN_LOOP = "must not form a cycle; {names} do, remove one of them"
NOT_A_DAY = "must be a date, as in 2027-01-31"
NO_WORKFLOW_LIMIT = (
    "needs the key environment or branch: without them, anyone who can push a branch to that repository could act as "
    "the lab"
)
QUEUE_WITHOUT_BUCKET = "queue needs bucket: only a bucket sends messages; name the bucket, or remove queue"
PRESIGNED_WITHOUT_BUCKET = (
    "presigned_uploads needs bucket: without one, labs upload through the bot; name the bucket, or remove "
    "presigned_uploads"
)
SIMULATES_UNKNOWN = "{name} simulates {device}, which must be another target of a lab in `labs`"
