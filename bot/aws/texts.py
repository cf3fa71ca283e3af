"""What people read about a bucket, a queue or a folder: errors name the object, the reason and what to do."""

from __future__ import annotations

# -- the service --

AWAY = "{place} cannot be reached now: {reason}"
DENIED = (
    "{place}: {action} is denied to these AWS credentials; allow it in a policy (docs/hardware-results.md has the "
    "policies)"
)
DENIED_UPLOAD = (
    "{place}: {action} is denied: the bucket's policy denies it, or no policy allows it to these credentials; "
    "docs/hardware-results.md has the policies. On Ceph and other stores that do not support s3:if-none-match, the "
    "bucket policy "
    "for AWS denies every upload: replace it with the policy for those stores"
)
DENIED_KEY = (
    "{place}: {action} is denied: the bucket is encrypted with a key of AWS KMS; allow {action} on that key to these "
    "credentials, in their policy and in the key's"
)
NO_CONDITIONAL_WRITES = (
    "{place}: this store lacks conditional writes (If-None-Match: *), without which files could be overwritten; update "
    "the store, or set AWS_ENDPOINT_URL and the bucket to one that has them (docs/hardware-results.md)"
)
NOT_IMPLEMENTED = "{place}: this store does not implement {action}; update it, or set AWS_ENDPOINT_URL to one that does"
NOWHERE = (
    "{place} does not exist at the account or endpoint that the AWS_* variables name; create it, or correct its name"
)
NO_CREDENTIALS = (
    "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role"
)
BAD_CREDENTIALS = (
    "{place}: AWS does not accept these credentials ({reason}); renew AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)
NO_REGION = "AWS_DEFAULT_REGION is not set; set it to the region of {place}, such as us-west-2"
BAD_REGION = "AWS_DEFAULT_REGION is not the name of a region such as us-west-2; correct it"
OTHER_REGION = "{place} is in another region; set AWS_DEFAULT_REGION to that region"
WRONG_CLOCK = "{place}: AWS does not accept our signature, because this machine's clock is wrong; correct it"
REFUSED = "{place}: {action} was refused ({reason}); correct the AWS_* variables or the names in app.yaml"
HALF_A_KEY = "{missing} is not set, but {given} is; set both or neither"
NO_PROFILE = "AWS_PROFILE names a profile that none of AWS's configuration files has"
BAD_ENDPOINT = "{name} {problem}"

# -- objects --

NOT_THERE = "{key} is not in the bucket"
TOO_LARGE = "{key} has {size:,} bytes; at most {limit:,} are read"
TOO_LONG = "{key} has more than {limit:,} bytes; no more are read"
OTHER_CONTENT = "{key} is already stored with other content, and nothing is overwritten; upload under another run ID"
WRITTEN_MEANWHILE = "somebody else wrote {key} at the same moment"

# -- a folder in place of a bucket --

NO_FOLDER = "{path} is not a folder; name one that is laid out as the bucket is"
OUTSIDE = "{key} is outside {root}; only files in the folder itself are read"
NO_FILE = "{key} is not a file"
UNREADABLE = "{key} cannot be read: {reason}"

# -- the folder beside the database --

UNWRITABLE = "{key} cannot be written: {reason}"
DISK_FULL = (
    "The disk of the bot has {free:,} MB free, and uploads must leave {least:,} MB. Ask the operator to free space, or "
    "to name a bucket (`results.bucket`), and upload again: {size:,} bytes were not stored."
)

# -- messages of a queue --

NOT_JSON = "it is not JSON"
NOT_AN_EVENT = "it is not an S3 notification"
OTHER_VERSION = "it has version {version}; only 2.x is supported"
UNDELIVERED = "could not store the notification of a new file: {reason}"
