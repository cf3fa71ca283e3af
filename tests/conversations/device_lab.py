"""A town whose lab accepts requests, the lab's own calls, and an issuer of OIDC tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import aiohttp
import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bot.engine.tokens import LAB as LAB_SCOPE
from bot.engine.tokens import TokenStore
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.store import JOBS, JobStore
from handlers.labs.calls import LAB_CALLS
from sandbox import PullRequest
from tests.bucket import World
from tests.conversations.lab import Moments
from tests.conversations.town import Town, town
from tests.handlers.device_tests.cases import new_job
from tests.serving import served

LAB, TARGET = "example-lab", "hexagon-v73"
PUBLIC_URL = "https://ci.example.org"
CONFIG = """
public_url: {public_url}
repositories:
  octocat/compiler:
    results:
      bucket: {bucket}
      poll: 1h
      labs:
        example-lab:
          targets: {{hexagon-v73: {{tier: 2, timeout: 2h}}, adreno: nightly}}
          presigned_uploads: {presigned}
          {extra}
          identity:
            github_oidc: {{repository_id: 123, owner_id: 9, environment: devices, issuer: "{issuer}"}}
            buildkite_oidc:
              organization_id: 018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4b
              pipeline_id: 018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4c
              branch: main
              issuer: "{issuer}/buildkite"
        other-lab: {{targets: {{adreno: {{tier: 2}}}}}}
  octocat/other:
    results:
      bucket: {bucket}
      labs: {{example-lab: {{targets: {{hexagon-v73: {{tier: 2}}}}}}}}
"""
GITHUB = {
    "sub": "repo:octocat/lab:environment:devices",
    "repository_id": "123",
    "repository_owner_id": "9",
    "environment": "devices",
    "event_name": "schedule",
    "ref": "refs/heads/main",
}
BUILDKITE = {
    "sub": "organization:acme:pipeline:lab:ref:refs/heads/main:commit:x:step:y",
    "organization_id": "018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4b",
    "pipeline_id": "018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4c",
    "build_branch": "main",
    "build_source": "schedule",
}


@cache
def rsa_key(name: str) -> RSAPrivateKey:
    """Return a private key, the same one for each name."""
    return generate_private_key(public_exponent=65537, key_size=2048)


def public_pem(name: str) -> bytes:
    """Return the public key, as PEM."""
    return rsa_key(name).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class Issuer:
    """An issuer of tokens whose keys a test may replace; while it is `away`, it answers with errors."""

    url: str = ""
    keys: list[str] = field(default_factory=lambda: ["first"])
    away: bool = False
    asked: int = 0

    async def answer(self, _: web.Request) -> web.Response:
        """Answer with the public keys."""
        self.asked += 1
        if self.away:
            return web.Response(status=503)
        listed = []
        for name in self.keys:
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key(name).public_key()))
            listed.append({**key, "kid": name, "use": "sig", "alg": "RS256"})
        return web.json_response({"keys": listed})

    def token(
        self,
        claims: Mapping[str, Any] = GITHUB,
        *,
        key: str = "first",
        age: float = 0.0,
        path: str = "",
        **changes: Any,
    ) -> str:
        """Return a token issued `age` seconds ago; a claim whose value is None is left out."""
        issued_at = time.time() - age
        token_claims = {
            "iss": self.url + path,
            "aud": PUBLIC_URL,
            "iat": issued_at,
            "nbf": issued_at,
            "exp": issued_at + 300,
            **claims,
            **changes,
        }
        token_claims = {name: value for name, value in token_claims.items() if value is not None}
        return jwt.encode(token_claims, rsa_key(key), algorithm="RS256", headers={"kid": key})


def unsigned(claims: Mapping[str, Any], **header: str) -> str:
    """Return a token without a signature."""
    parts = [json.dumps(part).encode() for part in ({"typ": "JWT", **header}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""])


@asynccontextmanager
async def issuer_of_tokens() -> AsyncIterator[Issuer]:
    """Serve an issuer."""
    issuer = Issuer()
    app = web.Application()
    app.router.add_get("/.well-known/jwks", issuer.answer)
    app.router.add_get("/buildkite/.well-known/jwks", issuer.answer)
    async with served(app) as issuer.url:
        yield issuer


@dataclass(frozen=True)
class DeviceLab:
    """A bot with a lab that accepts requests, and the lab's calls."""

    town: Town
    issuer: Issuer
    time: Moments
    token: str
    other_token: str
    pull: PullRequest
    client: aiohttp.ClientSession

    @property
    def store(self) -> JobStore:
        """Return the store of jobs."""
        return self.town.bot.services.part(JOBS)

    async def asked_for(self, name: str = "job", *, approval_needed: bool = False, **changes: Any) -> DeviceJob:
        """Store a job as if somebody had requested it."""
        fields = {
            "repository_id": self.town.repo.id,
            "pull_request": self.pull.number,
            "sha": self.pull.head_sha,
            "requested_at": self.time(),
            **changes,
        }
        return (await self.store.submit(new_job(name, **fields), approval_needed=approval_needed))[0]

    async def call(
        self, path: str, body: object = None, *, token: str | None = "", lab: str = LAB
    ) -> tuple[int, Mapping[str, str], Any]:
        """Make a call as a lab, with its own token, another token, or none (None)."""
        headers = {} if token is None else {"Authorization": f"Bearer {token or self.token}"}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        address = f"{self.town.url}/api/v1/labs/{lab}/{path}"
        async with self.client.post(address, data=data, headers=headers) as answer:
            text = await answer.text()
            return answer.status, answer.headers, json.loads(text) if text else None

    def metrics(self) -> str:
        """Return all metrics, as the operators' port reports them."""
        return self.town.bot.metrics.exposition()[0].decode()

    async def claim(self, *, wait: int = 0, token: str | None = "", lab: str = LAB, target: str = TARGET) -> Any:
        """Claim a job; return it, or None if there is none."""
        status, _, body = await self.call("claims", {"targets": [target], "wait": wait}, token=token, lab=lab)
        assert status in (200, 204), (status, body)
        return body


@asynccontextmanager
async def device_lab(
    database_url: str, bucket: World, *, presigned: bool = False, extra: str = "", config: str = CONFIG
) -> AsyncIterator[DeviceLab]:
    """Start the lab, the bot and the issuer."""
    moments = Moments()
    # Each agent of a lab has a connection of its own, and aiohttp opens a hundred by default.
    connector = aiohttp.TCPConnector(limit=0)
    async with issuer_of_tokens() as issuer, aiohttp.ClientSession(connector=connector) as client:
        text = config.format(
            public_url=PUBLIC_URL,
            bucket=bucket.name,
            issuer=issuer.url,
            presigned=str(presigned).lower(),
            extra=extra,
        )
        async with town(database_url, config=text, now=moments) as place:
            # On a slow machine the limits would allow more calls during a flood.
            place.bot.services.part(LAB_CALLS).clock = lambda: 0.0
            tokens = TokenStore(place.bot.engine.database.connector, LAB_SCOPE)
            lab_token, _ = await tokens.create(LAB, seconds=3600.0)
            other_lab_token, _ = await tokens.create("other-lab", seconds=3600.0)
            pull = place.repo.open_pull_request("hubot", "Faster")
            await place.quiet()
            yield DeviceLab(place, issuer, moments, lab_token, other_lab_token, pull, client)
