"""Authentication: the JWT and the installation tokens, which nobody else ever sees."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bot.core.errors import TryAgain
from bot.github.access import NO_PERMISSIONS, READING
from bot.github.app import GitHubApp
from bot.github.auth import AppKey, InstallationTokens, Token, TokenKey
from bot.github.client import GitHub
from bot.github.errors import AccessPaused, AppRefused, NotInstalled, RateLimited, is_refusal, status_of
from bot.github.transport.clock import GitHubClock
from tests.github.scripted import TOKEN_PREFIX, Say, ScriptedGitHub
from tests.github.support import APP_ID, INSTALLATION, Apps, client_of, pem, private_key, refused
from tests.github.virtual import JumpingTime
from tests.waiting import until

pytestmark = pytest.mark.one_clock
TOKENS = f"/app/installations/{INSTALLATION}/access_tokens"


async def test_the_app_sends_a_back_dated_jwt_that_expires_within_ten_minutes(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", "/app", Say(body={"slug": "nightjar"}))
    await scripted_app.as_app().getitem("/app")
    token = scripted.requests[0].bearer
    claims = jwt.decode(token, private_key().public_key(), algorithms=["RS256"], options={"verify_iss": False})
    moment = time.time()
    assert claims["iss"] == str(APP_ID)
    assert moment - 90 < claims["iat"] <= moment - 60
    assert moment < claims["exp"] <= moment + 600
    assert jwt.get_unverified_header(token)["alg"] == "RS256"


async def test_fifty_simultaneous_requests_share_one_token(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", "/rate_limit", Say(body={}))
    await asyncio.gather(*(client_of(scripted_app, INSTALLATION).getitem("/rate_limit") for _ in range(50)))
    assert scripted.tokens_made == 1
    assert {request.bearer for request in scripted.requests_for("GET", "/rate_limit")} == {f"{TOKEN_PREFIX}1"}


async def test_two_installations_have_their_own_tokens(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", "/rate_limit", Say(body={}))
    await client_of(scripted_app, 1).getitem("/rate_limit")
    await client_of(scripted_app, 2).getitem("/rate_limit")
    first, second = scripted.requests_for("GET", "/rate_limit")
    assert first.bearer != second.bearer


async def test_a_token_is_refreshed_before_it_expires(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("GET", "/rate_limit", Say(body={}))
    for later in (0, 54 * 60, 2 * 60):  # a token lasts 60 minutes and is used for 55
        jumping.now += later
        await gh.getitem("/rate_limit")
    assert [request.bearer[-1] for request in scripted.requests_for("GET", "/rate_limit")] == ["1", "1", "2"]


async def test_a_short_lived_token_is_used_for_half_its_life(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.token_lifetime = timedelta(seconds=60)
    scripted.will("GET", "/rate_limit", Say(body={}))
    for later in (0, 20, 20):
        jumping.now += later
        await gh.getitem("/rate_limit")
    assert [request.bearer[-1] for request in scripted.requests_for("GET", "/rate_limit")] == ["1", "1", "2"]


async def test_a_revoked_token_is_replaced_and_the_request_repeated(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("POST", "/repos/octocat/compiler/issues/1/comments", refused(401, "Bad credentials"), Say(201, {}))
    await gh.post("/repos/octocat/compiler/issues/1/comments", data={"body": "hi"})
    requests = scripted.requests_for("POST", "/repos/octocat/compiler/issues/1/comments")
    assert [request.bearer[-1] for request in requests] == ["1", "2"]
    assert [request.json for request in requests] == [{"body": "hi"}] * 2


async def test_a_second_401_counts_as_an_outage_and_is_not_final(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", "/rate_limit", refused(401, "Bad credentials"))
    with pytest.raises(AppRefused, match="GitHub refuses our access token: Bad credentials") as raised:
        await gh.getitem("/rate_limit")
    assert isinstance(raised.value, TryAgain)
    assert status_of(raised.value) == 401
    assert not is_refusal(raised.value)
    assert len(scripted.requests_for("GET", "/rate_limit")) == 2


async def test_the_app_reports_that_it_is_refused_until_github_accepts_it_again(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", "/app", refused(401, "A JSON web token could not be decoded"), Say(body={}))
    with pytest.raises(AppRefused):
        await scripted_app.as_app().getitem("/app")
    assert "GITHUB_APP_ID and GITHUB_PRIVATE_KEY" in str(scripted_app.refused)
    await scripted_app.as_app().getitem("/app")
    assert str(scripted_app.refused) == "None"


async def test_many_401s_at_once_request_one_new_token(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", "/rate_limit", *[refused(401)] * 10, Say(body={}))
    await asyncio.gather(*(gh.getitem("/rate_limit") for _ in range(10)))
    assert scripted.tokens_made == 2


async def test_a_late_401_of_an_old_token_does_not_discard_the_new_one(jumping: JumpingTime) -> None:
    made: list[TokenKey] = []

    async def mint(key: TokenKey) -> Token:
        made.append(key)
        return Token(f"ghs_{len(made)}", lifetime=3600)

    tokens, key = InstallationTokens(mint, jumping.timing()), TokenKey(INSTALLATION, 1, READING)
    await tokens.get(key)
    tokens.drop(key, "ghs_1")
    await tokens.get(key)
    tokens.drop(key, "ghs_1")
    assert (await tokens.get(key)).value == "ghs_2"
    assert "ghs" not in repr(await tokens.get(key))


async def test_a_token_requested_before_the_permissions_changed_is_not_cached(jumping: JumpingTime) -> None:
    answers: list[asyncio.Future[Token]] = []

    async def mint(_: TokenKey) -> Token:
        answers.append(asyncio.get_running_loop().create_future())
        return await answers[-1]

    tokens, key = InstallationTokens(mint, jumping.timing()), TokenKey(INSTALLATION, 1, READING)
    first = asyncio.ensure_future(tokens.get(key))
    await until(lambda: len(answers) == 1)
    tokens.forget(INSTALLATION)
    second = asyncio.ensure_future(tokens.get(key))
    await until(lambda: len(answers) == 2)
    answers[1].set_result(Token("ghs_after", lifetime=3600))
    assert (await second).value == "ghs_after"
    answers[0].set_result(Token("ghs_before", lifetime=3600))
    assert (await first).value == "ghs_before"
    assert (await tokens.get(key)).value == "ghs_after"


async def test_a_change_of_one_installation_leaves_the_tokens_of_another(jumping: JumpingTime) -> None:
    made: list[int] = []

    async def mint(key: TokenKey) -> Token:
        made.append(key.installation)
        tokens.forget(2)
        return Token(f"ghs_{len(made)}", lifetime=3600)

    tokens = InstallationTokens(mint, jumping.timing())
    for _ in range(2):
        for installation in (1, 2):
            await tokens.get(TokenKey(installation, 1, READING))
    assert made == [1, 2, 2]


async def test_a_rejected_jwt_is_not_tried_again(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", "/app", refused(401, "A JSON web token could not be decoded"))
    with pytest.raises(AppRefused, match="could not be decoded"):
        await scripted_app.as_app().getitem("/app")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("status", [403, 404])
async def test_a_refused_token_does_not_count_as_a_missing_resource(
    scripted: ScriptedGitHub, gh: GitHub, status: int
) -> None:
    scripted.will("POST", TOKENS, refused(status))
    scripted.will("GET", "/app", Say(body={"id": APP_ID}))
    with pytest.raises(NotInstalled, match="installation 42") as raised:
        await gh.getitem("/repos/octocat/compiler")
    assert status_of(raised.value) is None


@pytest.mark.parametrize(("method", "path"), [("POST", TOKENS), ("GET", "/rate_limit"), ("POST", "/graphql")])
async def test_a_suspended_installation_is_waited_for(
    scripted: ScriptedGitHub, scripted_app: GitHubApp, gh: GitHub, method: str, path: str
) -> None:
    """Whether it was suspended before or after its token was made."""
    scripted.will(method, path, refused(403, "This installation has been suspended"))
    with pytest.raises(AccessPaused, match="the App's installation 42 is suspended on GitHub") as raised:
        await (gh.graphql("query { viewer { login } }") if path == "/graphql" else gh.getitem("/rate_limit"))
    assert raised.value.installation == 42
    assert (is_refusal(raised.value), status_of(raised.value)) == (False, None)
    assert scripted_app.suspended == "suspended on GitHub, so their jobs wait: 42; see `nightjar doctor`"
    scripted_app.forget(42)
    assert scripted_app.suspended is None


async def test_requests_that_wait_for_a_token_share_its_failure(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("POST", TOKENS, refused(429, "slow down", retry_after="90"))
    ends = await asyncio.gather(*(gh.getitem("/rate_limit") for _ in range(20)), return_exceptions=True)
    assert {type(end) for end in ends} == {RateLimited}
    assert len(scripted.requests) == 1


async def test_a_token_is_requested_again_after_a_500(scripted: ScriptedGitHub, gh: GitHub) -> None:
    made = Say(201, {"token": "ghs_late", "expires_at": "2099-01-01T00:00:00Z"})
    scripted.will("POST", TOKENS, Say(500), made)
    scripted.will("GET", "/rate_limit", Say(body={}))
    await gh.getitem("/rate_limit")
    assert scripted.requests_for("GET", "/rate_limit")[0].bearer == "ghs_late"


async def test_a_cancelled_request_leaves_the_token_to_the_others(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", "/rate_limit", Say(body={}))
    impatient = asyncio.ensure_future(gh.getitem("/rate_limit"))
    patient = asyncio.ensure_future(gh.getitem("/rate_limit"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == {}
    assert scripted.tokens_made == 1


def _elliptic() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _with_passphrase() -> str:
    locked = serialization.BestAvailableEncryption(b"open sesame")
    form = serialization.PrivateFormat.PKCS8
    return private_key().private_bytes(serialization.Encoding.PEM, form, locked).decode()


@pytest.mark.parametrize(
    "broken",
    ["", "a path/to/key.pem", "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----"],
)
def test_a_malformed_key_is_named_and_not_shown(broken: str) -> None:
    with pytest.raises(ValueError, match="GITHUB_PRIVATE_KEY") as raised:
        AppKey("7", broken, GitHubClock(time.time))
    assert "c2VjcmV0" not in str(raised.value)


@pytest.mark.parametrize("make", [_elliptic, _with_passphrase])
def test_a_key_of_another_kind_is_refused_at_once(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match="without a passphrase"):
        AppKey("7", make(), GitHubClock(time.time))


def test_a_key_with_escaped_line_endings_is_accepted() -> None:
    assert AppKey("7", pem().replace("\n", "\\n"), GitHubClock(time.time)).jwt().count(".") == 2


def test_the_app_and_its_clients_show_no_secret(make_app: Apps) -> None:
    app = make_app()
    text = repr(app) + repr(client_of(app, INSTALLATION, permissions=NO_PERMISSIONS)) + repr(app.as_app())
    assert "PRIVATE KEY" not in text
    assert "GitHub(42, read only)" in text
