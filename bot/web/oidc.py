"""Tokens of OpenID Connect: verified with the keys of an issuer, which are remembered through its outages.

The issuer, the audience and the algorithm are ours to name. Nothing that a token says is used before its signature was
verified, except `kid`, which chooses among the issuer's keys.

Tokens are not remembered: one may be shown again until it expires, about five minutes after it was issued. All calls
that take such tokens are safe to repeat, so that a replay does nothing that its owner has not done.
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
"""How long an issuer's keys are used before it is asked again. If it does not answer, they are used on."""
LONGEST_OUTAGE = 7 * 86_400.0
"""How long keys are used while the issuer does not answer."""
PAUSE_SECONDS = 30.0
"""Between two questions to an issuer, whoever sends tokens with keys that do not exist."""
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
    """The issuer's keys are not known and cannot be read now."""


@dataclass(slots=True)
class _Keys:
    """An issuer's keys by their ids; moments are those of the clock, and in the past before the first time."""

    keys: Mapping[str, RSAPublicKey] = field(default_factory=dict)
    read_at: float = -LONGEST_OUTAGE
    asked_at: float = -LONGEST_OUTAGE


class IssuerKeys:
    """The keys of issuers, read below each issuer's own address; `clock` is in seconds from anywhere, never back."""

    def __init__(self, reader: Reader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self.clock = clock
        self._issuers: dict[str, _Keys] = {}
        self._flights: SingleFlight[str, None] = SingleFlight()

    async def find(self, issuer: str, key_id: str) -> RSAPublicKey | None:
        """Return a key of an issuer, None if it has no such key. Raises `IssuerAway` where that cannot be known."""
        known = self._issuers.setdefault(issuer, _Keys())
        now = self.clock()
        stale = key_id not in known.keys or now - known.read_at >= FRESH_SECONDS
        if stale and now - known.asked_at >= PAUSE_SECONDS:
            await self._flights.do(issuer, lambda: self._read(issuer, known))
        if not known.keys or self.clock() - known.read_at >= LONGEST_OUTAGE:
            raise IssuerAway(issuer)
        return known.keys.get(key_id)

    async def _read(self, issuer: str, known: _Keys) -> None:
        # Before the request, so that the pause also applies after one that failed or was cancelled.
        known.asked_at = self.clock()
        try:
            answer = await self._reader.json(f"{issuer}/.well-known/jwks", within=TIMEOUT, limit=LARGEST)
            keys = _rsa_keys(answer)
        except (TryAgain, UserError) as error:
            log.warning("keys of an issuer cannot be read", issuer=issuer, reason=str(error), known=len(known.keys))
            return
        # An empty set is most likely a fault of the issuer, and would make us refuse all of its tokens.
        if keys:
            known.keys, known.read_at = keys, self.clock()
        else:
            log.warning("an issuer has no keys", issuer=issuer, known=len(known.keys))


ISSUER_KEYS = PartKey[IssuerKeys]("issuer-keys")


async def verified_claims(keys: IssuerKeys, token: str, *, issuer: str, audience: str) -> Mapping[str, Any]:
    """Return what a token says, once its signature, issuer, audience and times were verified.

    Raises `InvalidToken`, and `IssuerAway`.
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
    """Return the RSA keys of a set that sign, by their ids; others are left out (RFC 7517, section 5)."""
    listed = answer.get("keys") if isinstance(answer, dict) else None
    found: dict[str, RSAPublicKey] = {}
    for one in listed[:MOST_KEYS] if isinstance(listed, list) else ():
        if not isinstance(one, dict) or one.get("kty") != "RSA" or not isinstance(one.get("kid"), str):
            continue
        if one.get("use", "sig") != "sig" or one.get("alg", ALGORITHM) != ALGORITHM:
            continue
        try:
            key = jwt.PyJWK(one, algorithm=ALGORITHM).key
        except jwt.PyJWTError:
            continue
        if isinstance(key, RSAPublicKey) and key.key_size >= LEAST_BITS:
            found[one["kid"]] = key
    return found
