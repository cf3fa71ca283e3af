"""Decide who speaks for a lab: callers with one of its tokens, and the workflows that app.yaml names.

A lab with one name in several repositories is one lab. Its tokens are valid for all of these repositories; a workflow
only for those whose entry names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from nightjar_formats.items import first_of
from procrastinate.exceptions import ConnectorException

from bot.core.patterns import Pattern
from bot.engine.tokens import PREFIX, TokenStore
from bot.results.settings.lab_identity import BuildkiteOidc, GitHubOidc
from bot.web.oidc import InvalidToken, IssuerAway, IssuerKeys, verified_claims
from bot.web.problems import Problem
from handlers.labs import texts
from handlers.results.config import labs_of

if TYPE_CHECKING:
    from bot.config import Config
    from bot.results.settings.results import Lab

RETRY_SECONDS = 10
OF_OTHERS = frozenset({"InvalidIssuerError", "UnknownKey"})
"""Reasons of `InvalidToken` that say that a token is not this issuer's."""
_BEARER = Pattern(r"(?i:bearer) +([!-~]+) *")
TRUSTED_EVENTS = ("push", "repository_dispatch", "schedule", "workflow_dispatch")
"""Events that only time, or somebody with write access, can cause. GitHub adds events, and many of them, such as
`workflow_run` and `issue_comment`, start a workflow of the default branch for a stranger, who may then choose the code.
https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows
"""

OidcIdentity = GitHubOidc | BuildkiteOidc


@dataclass(frozen=True, slots=True)
class LabSpeaker:
    """Somebody who speaks for a lab in these repositories (names as in app.yaml); `name` is for the log."""

    lab: str
    repositories: frozenset[str]
    name: str


class RefusedCaller(Problem):
    """The caller does not speak for the lab; `why` is for the log and the metrics."""

    def __init__(self, status: int, detail: str, why: str) -> None:
        # https://www.rfc-editor.org/rfc/rfc6750#section-3
        error = ', error="invalid_token"' if status == 401 and why != "no token" else ""
        headers = {"WWW-Authenticate": f'Bearer realm="nightjar"{error}'} if status == 401 else {}
        super().__init__(status, detail, headers=headers)
        self.why = why


class LabAccess:
    """Decide who speaks for which lab."""

    def __init__(self, config: Config, tokens: TokenStore, keys: IssuerKeys) -> None:
        self._config = config
        self._tokens = tokens
        self._keys = keys

    async def speaker(self, request: web.Request, lab: str) -> LabSpeaker:
        """Return the caller. Raises `RefusedCaller`, and `Problem` if that cannot be verified now."""
        authorization = request.headers.get("Authorization")
        if authorization is None:
            raise RefusedCaller(401, texts.NO_TOKEN, "no token")
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise self._invalid("malformed token")
        if bearer[1].startswith(f"{PREFIX}_"):
            return await self._by_token(bearer[1], lab)
        return await self._by_claims(bearer[1], lab)

    async def _by_token(self, text: str, lab: str) -> LabSpeaker:
        try:
            token = await self._tokens.verify(text)
            if token is not None and token.subject == lab:
                await self._tokens.note_use(token)
        except ConnectorException as error:
            raise Problem(503, texts.UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error
        if token is None:
            raise self._invalid("unknown token")
        if token.subject != lab:
            raise RefusedCaller(403, texts.OTHER_LAB, "token of another lab")
        return LabSpeaker(lab, frozenset(self.labs(lab)), f"token {token.id}")

    async def _by_claims(self, text: str, lab: str) -> LabSpeaker:
        """Verify the token for each issuer that the lab's entries name."""
        # The token's own `iss` is not read first: before the signature is verified, anybody may have written it.
        found: dict[OidcIdentity, set[str]] = {}
        for repository, of in self.labs(lab).items():
            for identity in (of.identity.github_oidc, of.identity.buildkite_oidc) if of.identity else ():
                if identity is not None:
                    found.setdefault(identity, set()).add(repository)
        claims: dict[str, Mapping[str, Any]] = {}
        reasons, away = ["no identity"], False
        for issuer in sorted({identity.issuer for identity in found}):
            try:
                claims[issuer] = await verified_claims(
                    self._keys, text, issuer=issuer, audience=self._config.public_url or ""
                )
            except InvalidToken as error:
                reasons.append(str(error))
            except IssuerAway:
                away = True
        if not claims:
            if away:
                raise Problem(503, texts.ISSUER_AWAY, headers={"Retry-After": str(RETRY_SECONDS)})
            # If several checks failed, that of the token's own issuer has the useful reason.
            raise self._invalid(next((why for why in reasons[1:] if why not in OF_OTHERS), reasons[-1]))
        wrong = {
            identity: wrong_claim(identity, claims[identity.issuer]) for identity in found if identity.issuer in claims
        }
        repositories = {name for identity, claim in wrong.items() if not claim for name in found[identity]}
        if not repositories:
            claim = first_of(wrong.values())
            raise RefusedCaller(403, texts.WRONG_CLAIM.format(claim=claim, lab=lab), f"claim {claim}")
        said = first_of(claims.values())
        return LabSpeaker(lab, frozenset(repositories), str(said["sub"])[:200])

    def labs(self, lab: str) -> dict[str, Lab]:
        """Return the entries of a lab in app.yaml, by their repositories."""
        known = self._config.repositories.items()
        return {name: labs_of(settings)[lab] for name, settings in known if lab in labs_of(settings)}

    def _invalid(self, why: str) -> RefusedCaller:
        audience = self._config.public_url or texts.NO_PUBLIC_URL
        return RefusedCaller(401, texts.INVALID_TOKEN.format(audience=audience), why)


def wrong_claim(identity: OidcIdentity, claims: Mapping[str, Any]) -> str:
    """Return the first claim that is not what app.yaml names; empty if all are right.

    https://docs.github.com/actions/reference/security/oidc, https://buildkite.com/docs/agent/v3/cli-oidc
    """
    if isinstance(identity, GitHubOidc):
        if claims.get("event_name") not in TRUSTED_EVENTS:
            return "event_name"
        wanted: dict[str, object] = {
            "repository_id": str(identity.repository_id),
            "repository_owner_id": identity.owner_id and str(identity.owner_id),
            "environment": identity.environment,
            "ref": identity.branch and f"refs/heads/{identity.branch}",
        }
    else:
        if claims.get("build_source") not in identity.sources:
            return "build_source"
        wanted = {
            "organization_id": identity.organization_id,
            "pipeline_id": identity.pipeline_id,
            "build_branch": identity.branch,
        }
    return next((name for name, value in wanted.items() if value is not None and claims.get(name) != value), "")
