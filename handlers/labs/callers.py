"""Authenticate the callers of the labs' API: those with a token of a lab, and the workflows that app.yaml names.

A lab with one name in several repositories is one lab. Its tokens are valid for all of these repositories; a workflow
only for those whose entry names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from nightjar_formats.items import first_of

from bot.core.patterns import Pattern
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.tokens import PREFIX, TokenStore
from bot.results.settings.lab_identity import BuildkiteOidc, GitHubOidc
from bot.web.oidc import InvalidToken, IssuerAway, IssuerKeys, verified_claims
from bot.web.problems import Problem
from handlers.labs import texts
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.results.settings.results import Lab

RETRY_SECONDS = 10
OTHER_ISSUER = frozenset({"InvalidIssuerError", "UnknownKey"})
"""Reasons of `InvalidToken` which say that a token is from another issuer."""
_BEARER = Pattern(r"(?i:bearer) +([!-~]+) *")
TRUSTED_EVENTS = ("push", "repository_dispatch", "schedule", "workflow_dispatch")
"""Events that only time, or somebody with write access, can cause. GitHub adds events, and many of them, such as
`workflow_run` and `issue_comment`, start a workflow of the default branch for a stranger, who may then choose the code.
https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows
"""

OidcIdentity = GitHubOidc | BuildkiteOidc


@dataclass(frozen=True, slots=True)
class LabCaller:
    """A caller that may act for a lab in these repositories (names as in app.yaml); `name` is for the log."""

    lab: str
    repositories: frozenset[str]
    name: str


class RefusedCaller(Problem):
    """The caller may not act for the lab; `reason` is for the log."""

    def __init__(self, status: int, detail: str, reason: str) -> None:
        # https://www.rfc-editor.org/rfc/rfc6750#section-3
        error = ', error="invalid_token"' if status == 401 and reason != "no token" else ""
        headers = {"WWW-Authenticate": f'Bearer realm="nightjar"{error}'} if status == 401 else {}
        super().__init__(status, detail, headers=headers)
        self.reason = reason


class LabAccess:
    """Authenticates callers and finds the repositories in which they may act for a lab."""

    def __init__(self, config: Config, tokens: TokenStore, keys: IssuerKeys) -> None:
        self._config = config
        self._tokens = tokens
        self._keys = keys

    async def authenticate(self, request: web.Request, lab: str) -> LabCaller:
        """Return the caller. Raises `RefusedCaller`, and `Problem` if the token cannot be verified now."""
        authorization = request.headers.get("Authorization")
        if authorization is None:
            raise RefusedCaller(401, texts.NO_TOKEN, "no token")
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise self._invalid("malformed token")
        if bearer[1].startswith(f"{PREFIX}_"):
            return await self._by_token(bearer[1], lab)
        return await self._by_claims(bearer[1], lab)

    async def _by_token(self, text: str, lab: str) -> LabCaller:
        try:
            token = await self._tokens.verify(text)
            if token is not None and token.subject == lab:
                await self._tokens.note_use(token)
        except DatabaseFailure as error:
            raise Problem(503, texts.UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error
        if token is None:
            raise self._invalid("unknown token")
        if token.subject != lab:
            raise RefusedCaller(403, texts.OTHER_LAB, "token of another lab")
        return LabCaller(lab, frozenset(self.labs(lab)), f"token {token.id}")

    async def _by_claims(self, text: str, lab: str) -> LabCaller:
        """Verify the token for each issuer that the lab's entries name."""
        # The token's own `iss` does not choose the issuer: before verification, anybody may have written it.
        repositories_by_identity: dict[OidcIdentity, set[str]] = {}
        for repository, settings in self.labs(lab).items():
            identities = settings.identity
            for identity in (identities.github_oidc, identities.buildkite_oidc) if identities else ():
                if identity is not None:
                    repositories_by_identity.setdefault(identity, set()).add(repository)
        claims: dict[str, Mapping[str, Any]] = {}
        reasons, issuer_is_away = ["no identity"], False
        for issuer in sorted({identity.issuer for identity in repositories_by_identity}):
            try:
                claims[issuer] = await verified_claims(
                    self._keys, text, issuer=issuer, audience=self._config.public_url or ""
                )
            except InvalidToken as error:
                reasons.append(str(error))
            except IssuerAway:
                issuer_is_away = True
        if not claims:
            if issuer_is_away:
                raise Problem(503, texts.ISSUER_AWAY, headers={"Retry-After": str(RETRY_SECONDS)})
            # If several checks failed, the check for the token's own issuer has the useful reason.
            raise self._invalid(next((reason for reason in reasons[1:] if reason not in OTHER_ISSUER), reasons[-1]))
        wrong_claims = {
            identity: wrong_claim(identity, claims[identity.issuer])
            for identity in repositories_by_identity
            if identity.issuer in claims
        }
        repositories = {
            repository
            for identity, claim in wrong_claims.items()
            if not claim
            for repository in repositories_by_identity[identity]
        }
        if not repositories:
            claim = first_of(wrong_claims.values())
            raise RefusedCaller(403, texts.WRONG_CLAIM.format(claim=claim, lab=lab), f"claim {claim}")
        subject = str(first_of(claims.values())["sub"])
        return LabCaller(lab, frozenset(repositories), subject[:200])

    def labs(self, lab: str) -> dict[str, Lab]:
        """Return the entries of a lab in app.yaml, by their repositories."""
        with_labs = self._config.configured.with_feature(LAB_RESULTS)
        return {name: results.labs[lab] for name, results in with_labs if lab in results.labs}

    def _invalid(self, reason: str) -> RefusedCaller:
        audience = self._config.public_url or texts.NO_PUBLIC_URL
        return RefusedCaller(401, texts.INVALID_TOKEN.format(audience=audience), reason)


def wrong_claim(identity: OidcIdentity, claims: Mapping[str, Any]) -> str:
    """Return the name of the first claim that differs from app.yaml; empty if all are right.

    https://docs.github.com/actions/reference/security/oidc, https://buildkite.com/docs/agent/v3/cli-oidc
    """
    if isinstance(identity, GitHubOidc):
        if claims.get("event_name") not in TRUSTED_EVENTS:
            return "event_name"
        expected: dict[str, object] = {
            "repository_id": str(identity.repository_id),
            "repository_owner_id": identity.owner_id and str(identity.owner_id),
            "environment": identity.environment,
            "ref": identity.branch and f"refs/heads/{identity.branch}",
        }
    else:
        if claims.get("build_source") not in identity.sources:
            return "build_source"
        expected = {
            "organization_id": identity.organization_id,
            "pipeline_id": identity.pipeline_id,
            "build_branch": identity.branch,
        }
    return next((name for name, value in expected.items() if value is not None and claims.get(name) != value), "")
