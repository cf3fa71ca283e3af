"""Read the errors of an object store that speaks S3's protocol: what was denied, and what is missing for good.

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
    """Return the permission that is missing: the one that the store names, which may be of another service."""
    found = _DENIED.search(message)
    return found[1] if found else otherwise


def refusal_reason(code: str, message: str) -> str:
    """Return a store's code and its own sentence in one line, for a text."""
    sentence = " ".join(message.split())
    if len(sentence) > LONGEST_SENTENCE:
        sentence = f"{sentence[:LONGEST_SENTENCE]}…"
    return f"{code}: {sentence.rstrip('.')}" if sentence and sentence != code else code
