"""The App's private key, parsed once: checking that its primes are prime takes a tenth of a second."""

from __future__ import annotations

import base64
from contextlib import suppress
from functools import lru_cache

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

BEGINS = "-----BEGIN"


def pem_of(text: str) -> str:
    """Return a PEM text with line ends; .env files and consoles often hold them as a backslash and an n.

    A text without the first line of a PEM file may be the whole file in base64, which fits in one line everywhere.
    """
    if BEGINS not in text:
        with suppress(ValueError):  # the caller reports the error
            text = base64.b64decode(text.strip(), validate=True).decode("ascii")
    return text.replace("\\n", "\n").strip() + "\n"


def one_line(pem: str) -> str:
    """Return a PEM text as one line that `pem_of` reads, without quotes, spaces or backslashes."""
    return base64.b64encode(pem.encode("ascii")).decode("ascii")


@lru_cache(maxsize=1)
def rsa_key(pem: str) -> RSAPrivateKey | None:
    """Return the RSA private key of a PEM text, None if there is none that works without a passphrase."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    # TypeError: the key needs a passphrase.
    # https://cryptography.io/en/latest/hazmat/primitives/asymmetric/serialization/#cryptography.hazmat.primitives.serialization.load_pem_private_key
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPrivateKey) else None
