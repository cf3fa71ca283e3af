"""Read the errors of an object store with S3's protocol: the permission that is missing, and the reason of a refusal.

https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

from __future__ import annotations

from nightjar_formats.patterns import Pattern

NOT_IMPLEMENTED = 501
LONGEST_SENTENCE = 300
"""Characters of a store's own sentence that a text quotes."""
KMS = "kms:"
"""How the permissions for keys begin: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html."""

_DENIED = Pattern(r"not authorized to perform:? ([a-z0-9-]{1,30}:[A-Za-z]{1,60})\b")


def denied_action(message: str, otherwise: str) -> str:
    """Return the missing permission that a store's message names, perhaps of another service, else `otherwise`."""
    match = _DENIED.search(message)
    return match[1] if match else otherwise


def refusal_reason(code: str, message: str) -> str:
    """Return a store's code and its own sentence in one line, for a text."""
    sentence = " ".join(message.split())
    if len(sentence) > LONGEST_SENTENCE:
        sentence = f"{sentence[:LONGEST_SENTENCE]}…"
    return f"{code}: {sentence.rstrip('.')}" if sentence and sentence != code else code
