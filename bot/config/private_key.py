"""The App's private key, parsed once: checking that its primes are prime takes a tenth of a second."""

from __future__ import annotations

from functools import lru_cache

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key


def pem_of(text: str) -> str:
    """Return a PEM text with line ends; .env files and consoles often hold them as a backslash and an n."""
    return text.replace("\\n", "\n").strip() + "\n"


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
