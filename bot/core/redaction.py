"""Remove secrets from text: the last line of defense before anything is logged or printed.

No code should log a secret, but errors of libraries sometimes contain one: a URL with its password, a header.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from bot.core.patterns import Pattern, escape_pattern

REDACTED = "[redacted]"
AWS_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Variables of the environment with secrets that libraries read, not the bot."""
SHORTEST_SECRET = 4
"""Shorter values are ordinary words; replacing them would only garble the log."""

_SHAPES = (
    # Keys in PEM form (RFC 7468), whole, cut off, or with their line ends escaped.
    ("", r"(?s:-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z))", ""),
    # GitHub's tokens (https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats)
    ("", r"\b(?:gh[a-z]_[A-Za-z0-9_.\-]{10,}|github_pat_[A-Za-z0-9_]{10,})", ""),
    # Our own tokens (bot/engine/tokens.py).
    ("", r"\bnightjar_[0-9a-f]{12}_[0-9a-f]{8,}", ""),
    # JSON web tokens (RFC 7519), signed or not.
    ("", r"\beyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]*)?", ""),
    # Credentials of an Authorization header (RFC 9110, 11.6.2).
    (r"\b(?i:bearer|basic|token) +", r"[A-Za-z0-9._~+/=\-]{8,}", ""),
    # Our own cookies (bot/web/sign_in/cookies.py).
    (r"__Host-nightjar-[a-z\-]+=", r"[^;\s]+", ""),
    # The password of a URL (RFC 3986, 3.2.1); it ends at the last @ before the path.
    (r"://[^\s/?#:@]*:", r"[^\s/?#]+", "@"),
    # Webhook addresses of Slack and Discord are secrets as a whole; access keys and signatures of AWS.
    (r"(?:hooks\.slack\.com/\w+|discord(?:app)?\.com/api/webhooks)/", r"[\w/\-]+", ""),
    ("", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", ""),
    # Parameters of an address that give access: signatures of AWS, Google and Azure, and tokens. The address may be
    # encoded as a part of another one.
    # https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html,
    # https://learn.microsoft.com/rest/api/storageservices/create-service-sas
    (
        r"(?i:\bX-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|(?:\b|%(?:25)*(?:3F|26))"
        r"(?:sig|signature|jwt|token|(?:access|id|refresh)_token|client_secret|api_?key|password))"
        r"(?i:=|%(?:25)*3D)",
        r"(?:[^&\s%\"'<>]|%(?:25)*(?:[013-9A-Fa-f][0-9A-Fa-f]|2[0-5789A-Fa-f]))+",
        "",
    ),
    # The password of an encoded URL.
    (r"(?i:%(?:25)*3A(?:%(?:25)*2F){2}[^\s/?#:@%&]*%(?:25)*3A)", r"[^\s/?#&@]+?", r"(?i:%(?:25)*40)"),
)
"""The text before a secret, the secret itself, and the text after it. Redaction removes the secret alone."""
_SECRETS = [Pattern(f"({prefix}){secret}({suffix})") for prefix, secret, suffix in _SHAPES]

SHORT = 64
"""Characters. Most texts of a log line are short, and the same in many lines: its keys, the level, names."""


class Redactor:
    """Replace configured secrets, and whatever has the shape of one, in text and in values made of text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Code that uses a secret may strip it.
        stripped = {secret.strip() for secret in secrets}
        # Replace the longest first: a secret that contains another one must disappear as a whole.
        ordered = sorted(
            (secret for secret in stripped if len(secret) >= SHORTEST_SECRET), key=lambda secret: (-len(secret), secret)
        )
        patterns = ["".join(map(_encoded, secret)) for secret in ordered]
        self._configured = Pattern("|".join(patterns)) if patterns else None
        # One search decides whether a text has any secret; most texts have none.
        self._any = Pattern("|".join([*patterns, *map("".join, _SHAPES)]))
        self._short = lru_cache(maxsize=1024)(self._redacted)

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        return self._short(text) if len(text) <= SHORT else self._redacted(text)

    def _redacted(self, text: str) -> str:
        if not self._any.search(text):
            return text
        if self._configured is not None:
            text = self._configured.sub(REDACTED, text)
        for shape in _SECRETS:
            text = shape.sub(lambda match: f"{match[1]}{REDACTED}{match[2]}", text)
        return text

    def value(self, value: object) -> object:
        """Return a copy of any value without secrets, made of JSON's types only; other objects become their repr."""
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(str(key)): self.value(item) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self.value(item) for item in value]
            case bytes():
                return self.text(value.decode("utf-8", "backslashreplace"))
        return self.text(_repr(value))


def cut(text: str, most: int, redact: Callable[[str], str]) -> str:
    """Remove secrets from a text, then cut it to `most` characters."""
    # A secret that is cut in half is not recognized.
    redacted = redact(text)
    return redacted if len(redacted) <= most else f"{redacted[:most]}…"


def _repr(value: object) -> str:
    try:
        return str(value) if isinstance(value, BaseException) else repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"


@lru_cache(maxsize=256)  # a private key has two thousand characters, and few different ones
def _encoded(character: str) -> str:
    """Return a pattern of a secret's character as it may appear: in a repr, JSON, HTML, or a URL, once or more."""
    if character.isascii() and character.isalnum():
        return character  # nobody encodes these
    plain = {character, repr(character)[1:-1], json.dumps(character)[1:-1], html.escape(character)}
    plain |= {f"\\{character}"} if character in "\"'" else {"+"} if character == " " else set()
    octets = "".join(f"%(?:25)*{octet:02x}" for octet in character.encode("utf-8", "surrogatepass"))
    code = f"&#(?:0*{ord(character)}|x0*{ord(character):x});"
    # The longest first, as one may begin with another. Each further encoding adds backslashes.
    forms = [r"\\+".join(map(escape_pattern, form.split("\\"))) for form in sorted(plain, key=len, reverse=True)]
    return f"(?:{'|'.join(forms)}|(?i:{octets}|{code}))"
