"""Which requests are sent again, over real connections that break."""

from __future__ import annotations

import io
import logging
import traceback

import pytest
import structlog
from gidgethub import BadRequest, RedirectionException

from bot.core.errors import AnswerError
from bot.core.events import Payload
from bot.github.access import NO_PERMISSIONS
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.errors import Unavailable, Vanished, WriteRefused, is_not_found, status_of
from tests.github.scripted import TOKEN_PREFIX, Say, ScriptedGitHub
from tests.github.support import INSTALLATION, Apps, Seen, client_of, pem, private_key, refused
from tests.github.virtual import JumpingTime

COMMENTS = "/repos/{owner}/{repo}/issues/{number}/comments"
COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"
VARS = {"owner": "octocat", "repo": "compiler", "number": "1", "comment_id": "5"}
COMMENTS_PATH = "/repos/octocat/compiler/issues/1/comments"
COMMENT_PATH = "/repos/octocat/compiler/issues/comments/5"
OK = Say(body={"id": 5})


async def send(gh: GitHub, method: str) -> object:
    if method == "GET":
        return await gh.getitem(COMMENT, VARS)
    if method == "DELETE":
        await gh.delete(COMMENT, VARS)
        return None
    return await getattr(gh, method.lower())(COMMENT, VARS, data={"body": "hi"})


async def test_every_request_names_the_bot_and_the_api_version(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", COMMENT_PATH, OK)
    await gh.getitem(COMMENT, VARS)
    headers = scripted.requests_for("GET", COMMENT_PATH)[0].headers
    assert headers["user-agent"] == "nightjar"
    assert headers["x-github-api-version"] == "2022-11-28"
    assert headers["accept"] == "application/vnd.github.v3+json"


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("trouble", [Say(500), Say(502), Say(520), Say(drop=True)])
async def test_a_safe_request_is_repeated(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime, method: str, trouble: Say
) -> None:
    scripted.will(method, COMMENT_PATH, trouble, trouble, OK)
    await send(gh, method)
    assert len(scripted.requests_for(method, COMMENT_PATH)) == 3
    assert 0 < sum(jumping.slept) < 2


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_after_a_few_tries_the_job_must_come_back_later(
    scripted: ScriptedGitHub, gh: GitHub, method: str
) -> None:
    scripted.will(method, COMMENT_PATH, Say(503))
    with pytest.raises(Unavailable, match="GitHub answered 503") as raised:
        await send(gh, method)
    assert status_of(raised.value) == 503
    assert len(scripted.requests_for(method, COMMENT_PATH)) == 3


@pytest.mark.parametrize("trouble", [Say(500), Say(502), Say(drop=True)])
async def test_a_post_is_never_repeated_because_it_may_have_worked(
    scripted: ScriptedGitHub, gh: GitHub, trouble: Say
) -> None:
    scripted.will("POST", COMMENTS_PATH, trouble)
    with pytest.raises(Unavailable):
        await gh.post(COMMENTS, VARS, data={"body": "hi"})
    assert len(scripted.requests_for("POST", COMMENTS_PATH)) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "/repos/octocat/compiler/check-runs/9"),
        ("PUT", "/repos/octocat/compiler/pulls/1/merge"),
        ("PUT", "/repos/octocat/compiler/pulls/1/update-branch"),
        ("PUT", "/repos/octocat/compiler/contents/docs/index.md"),
    ],
)
async def test_a_request_whose_repetition_would_do_something_else_is_not_repeated(
    scripted: ScriptedGitHub, gh: GitHub, method: str, path: str
) -> None:
    scripted.will(method, path, Say(502))
    with pytest.raises(Unavailable):
        await getattr(gh, method.lower())(path, data={})
    assert len(scripted.requests_for(method, path)) == 1


async def test_a_read_is_repeated_even_if_a_write_there_is_not(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", "/repos/octocat/compiler/check-runs/9", Say(502), OK)
    assert await gh.getitem("/repos/octocat/compiler/check-runs/9") == {"id": 5}


async def test_a_short_retry_after_of_a_503_is_waited_for(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("GET", COMMENT_PATH, Say(503, headers={"retry-after": "3"}), OK)
    await gh.getitem(COMMENT, VARS)
    assert jumping.slept == [3]


async def test_a_long_retry_after_of_a_503_goes_to_the_queue(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", COMMENT_PATH, Say(503, headers={"retry-after": "120"}))
    with pytest.raises(Unavailable) as raised:
        await gh.getitem(COMMENT, VARS)
    assert raised.value.retry_in == 120
    assert len(scripted.requests_for("GET", COMMENT_PATH)) == 1


@pytest.mark.parametrize(("method", "path", "tries"), [("GET", COMMENT_PATH, 3), ("POST", COMMENTS_PATH, 1)])
async def test_silence_ends_at_the_timeout(
    scripted: ScriptedGitHub, gh: GitHub, method: str, path: str, tries: int
) -> None:
    scripted.will(method, path, Say(hang=True))
    with pytest.raises(Unavailable, match="no answer in time"):
        await (gh.getitem(path) if method == "GET" else gh.post(path, data={}))
    assert len(scripted.requests_for(method, path)) == tries


async def test_an_unreachable_github_is_named(make_app: Apps, unused_tcp_port: int) -> None:
    app = make_app(api_url=f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(Unavailable, match=f"no connection to 127.0.0.1:{unused_tcp_port}"):
        await app.as_app().getitem("/app")


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422])
async def test_a_refusal_is_final(scripted: ScriptedGitHub, gh: GitHub, status: int) -> None:
    scripted.will("PATCH", COMMENT_PATH, refused(status, "No."))
    with pytest.raises(BadRequest) as raised:
        await gh.patch(COMMENT, VARS, data={})
    assert status_of(raised.value) == status
    assert len(scripted.requests_for("PATCH", COMMENT_PATH)) == 1


async def test_a_truncated_answer_counts_as_unavailable(scripted: ScriptedGitHub, gh: GitHub) -> None:
    cut = Say(raw=b'{"id": 5', headers={"content-type": "application/json"})
    scripted.will("GET", COMMENT_PATH, cut)
    with pytest.raises(Unavailable, match="claims to be JSON, but is not"):
        await gh.getitem(COMMENT, VARS)


async def test_an_html_error_page_of_a_proxy_counts_as_unavailable(scripted: ScriptedGitHub, gh: GitHub) -> None:
    page = Say(502, raw=b"<html>", headers={"content-type": "application/json"})
    scripted.will("POST", COMMENTS_PATH, page)
    with pytest.raises(Unavailable, match="502"):
        await gh.post(COMMENTS, VARS, data={})


async def test_a_read_follows_a_renamed_repository(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", COMMENT_PATH, Say(301, headers={"location": f"{scripted.url}/repositories/9/comments/5"}))
    scripted.will("GET", "/repositories/9/comments/5", OK)
    assert await gh.getitem(COMMENT, VARS) == {"id": 5}
    assert "authorization" in scripted.requests_for("GET", "/repositories/9/comments/5")[0].headers


async def test_a_redirect_to_another_origin_does_not_get_our_token(scripted: ScriptedGitHub, gh: GitHub) -> None:
    elsewhere = ScriptedGitHub()
    async with elsewhere.serving():
        elsewhere.will("GET", "/log", Say(body={"steps": []}))
        scripted.will("GET", COMMENT_PATH, Say(302, headers={"location": f"{elsewhere.url}/log"}))
        await gh.getitem(COMMENT, VARS)
    assert "authorization" not in elsewhere.requests[0].headers


@pytest.mark.parametrize("status", [301, 302, 307])
async def test_a_write_does_not_follow_a_renamed_repository(scripted: ScriptedGitHub, gh: GitHub, status: int) -> None:
    scripted.will("POST", COMMENTS_PATH, Say(status, headers={"location": f"{scripted.url}/elsewhere"}))
    with pytest.raises(RedirectionException, match=r"use its new name in app\.yaml"):
        await gh.post(COMMENTS, VARS, data={})
    assert not scripted.requests_for("GET", "/elsewhere")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_client_without_permissions_refuses_to_write_before_anything_is_sent(
    scripted: ScriptedGitHub, scripted_app: GitHubApp, method: str
) -> None:
    gh = client_of(scripted_app, INSTALLATION, permissions=NO_PERMISSIONS)
    with pytest.raises(WriteRefused, match=f"{method} .*this client is read-only"):
        await send(gh, method)
    assert scripted.requests == []


async def test_metrics_get_the_template_and_never_the_address(scripted: ScriptedGitHub, gh: GitHub, seen: Seen) -> None:
    scripted.will("GET", COMMENT_PATH, OK)
    scripted.will("POST", COMMENTS_PATH, Say(drop=True))
    await gh.getitem(f"{COMMENT}?x=1", VARS)
    await gh.getitem(f"{scripted.url}{COMMENT_PATH}")
    with pytest.raises(Unavailable):
        await gh.post(COMMENTS, VARS, data={})
    assert seen.requests == [
        ("POST", "/app/installations/{installation_id}/access_tokens", 201),
        ("GET", COMMENT, 200),
        ("GET", "(address from a payload)", 200),
        ("POST", "/app/installations/{installation_id}/access_tokens", 201),
        ("POST", COMMENTS, 0),
    ]


async def test_an_address_of_another_host_is_refused(scripted: ScriptedGitHub, gh: GitHub) -> None:
    with pytest.raises(ValueError, match="not the host of GITHUB_API_URL"):
        await gh.getitem("https://api.github.com/user")
    assert scripted.requests == []


@pytest.mark.parametrize("name", ["..", "."])
async def test_a_value_cannot_escape_from_its_part_of_the_path(scripted: ScriptedGitHub, gh: GitHub, name: str) -> None:
    with pytest.raises(ValueError, match="a value of the path"):
        await gh.getitem("/repos/{owner}/{repo}/installation", {"owner": name, "repo": name})
    assert scripted.requests == []


async def test_a_value_with_slashes_stays_in_its_part_of_the_path(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", "/repos/octocat/a/../b?", OK)
    with pytest.raises(BadRequest):
        await gh.getitem("/repos/octocat/{repo}", {"repo": "a/../../user?"})
    assert scripted.requests[-1].query == {}


async def test_a_422_without_errors_or_message_is_still_a_refusal(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("POST", COMMENTS_PATH, Say(422, {"errors": []}))
    with pytest.raises(BadRequest) as raised:
        await gh.post(COMMENTS, VARS, data={})
    assert status_of(raised.value) == 422


async def test_predicates_read_the_answer(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", COMMENT_PATH, refused(404))
    with pytest.raises(BadRequest) as raised:
        await gh.getitem(COMMENT, VARS)
    assert is_not_found(raised.value)


async def test_no_secret_is_in_any_log_or_error(
    scripted: ScriptedGitHub, make_app: Apps, caplog: pytest.LogCaptureFixture
) -> None:
    """Every kind of failure once, with everything logged that can be."""
    caplog.set_level(logging.DEBUG)
    output = io.StringIO()
    with structlog.testing.capture_logs() as logged:
        loop = f"{scripted.url}{COMMENT_PATH}?sig=signed"
        troubles = [
            Say(500),
            Say(drop=True),
            Say(hang=True),
            Say(301, headers={"location": loop}),
            Say(raw=b"x" * 10, headers={"content-length": "20", "content-encoding": "gzip"}),
            refused(401, "Bad credentials"),
            refused(403),
            refused(422),
            refused(429, retry_after="100"),
        ]
        for trouble in troubles:
            scripted.will("GET", COMMENT_PATH, trouble)
            # Each has its own client: one that gets no more answers soon stops sending.
            gh = client_of(make_app(), INSTALLATION)
            try:
                await gh.getitem(COMMENT, VARS)
            except Exception as error:
                traceback.print_exception(error, file=output)
                message = error
                while message is not None:
                    print(repr(message), message.args, vars(message), file=output)
                    message = message.__cause__ or message.__context__  # type: ignore[assignment]
            else:
                pytest.fail(f"{trouble} raised nothing")
    text = output.getvalue() + caplog.text + repr(logged)
    assert text.count("Unavailable") >= 5
    assert TOKEN_PREFIX not in text
    assert "sig=signed" not in text
    assert "eyJ" not in text  # how every JWT begins
    assert pem().splitlines()[1] not in text
    assert str(private_key().private_numbers().d) not in text


@pytest.mark.parametrize("body", [b"null", b"7", b'"Unicorn"', b"<html>Unicorn</html>"])
@pytest.mark.parametrize("content_type", ["Application/JSON ; charset=utf-8", "text/html; charset=utf-8"])
async def test_a_200_that_is_neither_object_nor_list_is_an_error(
    scripted: ScriptedGitHub, gh: GitHub, body: bytes, content_type: str
) -> None:
    scripted.will("GET", COMMENT_PATH, *[Say(raw=body, headers={"content-type": content_type})] * 9)
    with pytest.raises(Unavailable) as unavailable:
        await gh.getitem(COMMENT, VARS)
    assert unavailable.value.answering
    with pytest.raises(Unavailable):
        [item async for item in gh.getiter(COMMENT, VARS)]


async def test_an_answer_with_half_of_a_surrogate_pair_is_read(scripted: ScriptedGitHub, gh: GitHub) -> None:
    answer = Say(raw=b'{"body": "\\ud83d"}', headers={"content-type": "application/json"})
    scripted.will("GET", COMMENT_PATH, answer)
    assert (await gh.getitem(COMMENT, VARS)).keys() == {"body"}


async def test_a_field_missing_in_an_answer_is_another_fault_than_one_missing_in_a_delivery(
    scripted: ScriptedGitHub, gh: GitHub
) -> None:
    scripted.will("GET", COMMENT_PATH, Say(body={"message": "Server Error"}))
    with pytest.raises(AnswerError):
        Payload(await gh.getitem(COMMENT, VARS), "comment").integer("id")
    scripted.will("GET", COMMENT_PATH, Say(body={"message": "Server Error"}))
    with pytest.raises(AnswerError):
        [item async for item in gh.getiter(COMMENT, VARS)]


async def test_a_404_on_what_existed_a_moment_ago_is_not_believed(scripted: ScriptedGitHub, gh: GitHub) -> None:
    pull = "/repos/octocat/compiler/pulls/1"
    scripted.will("GET", pull, Say(body={"number": 1}), refused(404))
    await gh.getitem(pull)
    with pytest.raises(Vanished):
        await gh.getitem(pull)
    scripted.will("GET", f"{pull}2", refused(404))
    with pytest.raises(BadRequest):
        await gh.getitem(f"{pull}2")
