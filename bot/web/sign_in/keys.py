"""Keys for sessions, forms and sign-ins, each derived from SESSION_SECRET for one purpose."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SEPARATOR = "\0"
"""Between the signed parts, so that two different lists of parts never become the same text."""
NONCE_BYTES = 12
"""Of AES-GCM: https://nvlpubs.nist.gov/nistpubs/Legacy/SP/nistspecialpublication800-38d.pdf."""


class SignInKeys:
    """Signs and encrypts with a secret. A signature for one `purpose` is invalid for every other."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def sign(self, purpose: str, *parts: str) -> str:
        """Return a signature of 43 characters, of A-Z, a-z, 0-9, `-` and `_`."""
        return _base64(self._digest(purpose, parts))

    def fits(self, signature: str, purpose: str, *parts: str) -> bool:
        """Say, in constant time, whether a signature is that of the parts."""
        return hmac.compare_digest(signature.encode(), self.sign(purpose, *parts).encode())

    def seal(self, text: str, *parts: str) -> str:
        """Encrypt a text, so that `open` needs the same parts."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return _base64(nonce + AESGCM(self._digest("seal", parts)).encrypt(nonce, text.encode(), None))

    def open(self, sealed: str, *parts: str) -> str | None:
        """Decrypt a text that was sealed with these parts; None if it was sealed with others, or changed."""
        try:
            raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
            return AESGCM(self._digest("seal", parts)).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], None).decode()
        except (InvalidTag, ValueError):
            return None

    def _digest(self, purpose: str, parts: tuple[str, ...]) -> bytes:
        return hmac.digest(self._secret, SEPARATOR.join([purpose, *parts]).encode(), "sha256")


def pkce_challenge(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636, 4.2)."""
    return _base64(hashlib.sha256(verifier.encode()).digest())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
