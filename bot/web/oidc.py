"""Verify tokens of OpenID Connect with the keys of their issuer, which stay cached while the issuer is unavailable.

The bot sets the issuer, the audience and the algorithm. It uses nothing that a token says before it has verified the
signature, except `kid`, which chooses among the issuer's keys.

The bot stores no tokens: one can be used again until it expires, about five minutes after it was issued. All calls that
accept such tokens are safe to repeat, so a replay has no effect that the owner's call did not have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jwt
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from bot.core.errors import TryAgain, UserError
from bot.core.parts import PartKey
from bot.core.single_flight import SingleFlight
from bot.core.web_json import Reader

ALGORITHM = "RS256"
"""The only accepted algorithm: with others, a token could be signed with a public key, or not at all."""
LEEWAY = 30.0
"""Seconds by which two clocks may differ."""
FRESH_SECONDS = 3600.0
"""How long keys are used before they are requested again. While the issuer does not answer, they stay in use."""
LONGEST_OUTAGE = 7 * 86_400.0
"""How long keys stay in use while the issuer does not answer."""
PAUSE_SECONDS = 30.0
"""The shortest time between two requests to an issuer, however many tokens name unknown keys."""
TIMEOUT = aiohttp.ClientTimeout(total=10, sock_connect=5)
LARGEST = 256 * 1024
"""Bytes of a set of keys."""
MOST_KEYS = 50
LEAST_BITS = 2048
REQUIRED = ("exp", "iat", "iss", "aud", "sub")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class InvalidToken(Exception):
    """The token is not one of this issuer for this audience; the text is the reason, for a log."""


class IssuerAway(Exception):
    """The bot has no keys of the issuer, and cannot read them now."""


@dataclass(slots=True)
class _Keys:
    """An issuer's keys by their IDs, and when they were last read and requested, in the clock's seconds."""

    keys: Mapping[str, RSAPublicKey] = field(default_factory=dict)
    read_at: float = -LONGEST_OUTAGE
    requested_at: float = -LONGEST_OUTAGE


class IssuerKeys:
    """The keys of issuers, read below each issuer's own address; `clock` counts seconds, and never goes back."""

    def __init__(self, reader: Reader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self.clock = clock
        self._issuers: dict[str, _Keys] = {}
        self._flights: SingleFlight[str, None] = SingleFlight()

    async def find(self, issuer: str, key_id: str) -> RSAPublicKey | None:
        """Return a key of an issuer; None if it has no such key. Raises `IssuerAway` if its keys are unknown."""
        issuer_keys = self._issuers.setdefault(issuer, _Keys())
        current_time = self.clock()
        stale = key_id not in issuer_keys.keys or current_time - issuer_keys.read_at >= FRESH_SECONDS
        if stale and current_time - issuer_keys.requested_at >= PAUSE_SECONDS:
            await self._flights.do(issuer, lambda: self._read(issuer, issuer_keys))
        if not issuer_keys.keys or self.clock() - issuer_keys.read_at >= LONGEST_OUTAGE:
            raise IssuerAway(issuer)
        return issuer_keys.keys.get(key_id)

    async def _read(self, issuer: str, issuer_keys: _Keys) -> None:
        # Set this before the request, so that the pause also follows a failed or cancelled request.
        issuer_keys.requested_at = self.clock()
        try:
            answer = await self._reader.json(f"{issuer}/.well-known/jwks", within=TIMEOUT, limit=LARGEST)
            keys = _rsa_keys(answer)
        except (TryAgain, UserError) as error:
            count = len(issuer_keys.keys)
            log.warning("keys of an issuer cannot be read", issuer=issuer, reason=str(error), known=count)
            return
        # An empty set is most likely a fault of the issuer. With it, the bot would refuse all tokens.
        if keys:
            issuer_keys.keys, issuer_keys.read_at = keys, self.clock()
        else:
            log.warning("an issuer has no keys", issuer=issuer, known=len(issuer_keys.keys))


ISSUER_KEYS = PartKey[IssuerKeys]("issuer-keys")


async def verified_claims(keys: IssuerKeys, token: str, *, issuer: str, audience: str) -> Mapping[str, Any]:
    """Verify the signature, issuer, audience and times of a token, and return its claims.

    Raises `InvalidToken` or `IssuerAway`.
    https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
    """
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise InvalidToken(type(error).__name__) from None
    key_id = header.get("kid")
    if header.get("alg") != ALGORITHM or not isinstance(key_id, str):
        raise InvalidToken("AlgorithmNotAllowed")
    key = await keys.find(issuer, key_id)
    if key is None:
        raise InvalidToken("UnknownKey")
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            issuer=issuer,
            audience=audience,
            leeway=LEEWAY,
            # PyJWT accepts a token without `exp` unless it is required. `strict_aud` refuses a list of audiences: such
            # a token is for others too, and they could use it here.
            options={"require": list(REQUIRED), "strict_aud": True},
        )
    except jwt.PyJWTError as error:
        raise InvalidToken(type(error).__name__) from None
    return claims


def _rsa_keys(answer: Any) -> dict[str, RSAPublicKey]:
    """Return the RSA keys for signatures in a JWK set by their IDs, and skip other keys (RFC 7517, section 5).

    The set is `{"keys": [{"kty": "RSA", "kid": "1", "use": "sig", "n": "…", "e": "AQAB"}]}`.
    """
    listed = answer.get("keys") if isinstance(answer, dict) else None
    keys: dict[str, RSAPublicKey] = {}
    for jwk in listed[:MOST_KEYS] if isinstance(listed, list) else ():
        if not isinstance(jwk, dict) or jwk.get("kty") != "RSA" or not isinstance(jwk.get("kid"), str):
            continue
        if jwk.get("use", "sig") != "sig" or jwk.get("alg", ALGORITHM) != ALGORITHM:
            continue
        try:
            key = jwt.PyJWK(jwk, algorithm=ALGORITHM).key
        except jwt.PyJWTError:
            continue
        if isinstance(key, RSAPublicKey) and key.key_size >= LEAST_BITS:
            keys[jwk["kid"]] = key
    return keys
