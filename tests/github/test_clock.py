"""A machine with a wrong clock: GitHub's `Date` header shows by how much, and the JWT is corrected."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import jwt
import pytest

from bot.github.app import GitHubApp
from bot.github.errors import AppRefused
from bot.github.transport.clock import AHEAD, BEHIND, TOLERANCE, WRONG, GitHubClock
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import Apps, client_of, private_key
from tests.github.virtual import JumpingTime

pytestmark = pytest.mark.one_clock
NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
DATE = {"date": format_datetime(NOON, usegmt=True)}
TOO_EARLY = Say(
    401, {"message": "'Issued at' claim ('iat') must be an Integer representing the time in the past"}, DATE
)


def at(wall: float) -> JumpingTime:
    return JumpingTime(wall=wall)


@pytest.mark.parametrize("ahead", [90, -86_400, 3 * 86_400])
async def test_a_jwt_uses_githubs_time_once_it_is_known(scripted: ScriptedGitHub, make_app: Apps, ahead: int) -> None:
    app = make_app(timing=at(NOON.timestamp() + ahead).timing())
    scripted.will("GET", "/app", TOO_EARLY, Say(body={"id": 7}, headers=DATE))
    assert await app.as_app().getitem("/app") == {"id": 7}
    _, second = scripted.requests_for("GET", "/app")
    options = {"verify_exp": False, "verify_iat": False}
    claims = jwt.decode(second.bearer, private_key().public_key(), algorithms=["RS256"], options=options)  # type: ignore[arg-type]
    assert claims["iat"] == pytest.approx(NOON.timestamp() - 60, abs=2)
    assert claims["exp"] == pytest.approx(NOON.timestamp() + 9 * 60, abs=2)
    assert app.clock.ahead == pytest.approx(ahead, abs=1)
    assert app.refused is None


async def test_a_token_lasts_as_long_as_github_says_whatever_our_clock_says(
    scripted: ScriptedGitHub, make_app: Apps
) -> None:
    time = at(NOON.timestamp() + 86_400)
    app = make_app(timing=time.timing())
    ends = {"token": "ghs_1", "expires_at": "2026-11-20T13:00:00Z"}
    scripted.will("POST", "/app/installations/42/access_tokens", Say(201, ends, DATE))
    scripted.will("GET", "/rate_limit", Say(body={}, headers=DATE))
    for later in (0, 54 * 60):
        time.now += later
        await client_of(app, 42).getitem("/rate_limit")
    assert len(scripted.requests_for("POST", "/app/installations/42/access_tokens")) == 1


async def test_with_a_correct_clock_a_rejected_jwt_is_not_tried_again(scripted: ScriptedGitHub, make_app: Apps) -> None:
    app = make_app(timing=at(NOON.timestamp()).timing())
    scripted.will("GET", "/app", TOO_EARLY)
    with pytest.raises(AppRefused):
        await app.as_app().getitem("/app")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(
    ("sent", "received", "headers", "ahead"),
    [
        (0.0, 0.5, DATE, 0.0),
        (-20.0, 9.0, DATE, 0.0),  # a slow answer is no more precise
        (0.9, 1.0, DATE, 0.0),  # `Date` has whole seconds
        (90.0, 90.5, DATE, 89.75),
        (-90.0, -89.5, DATE, -90.25),
        (90.0, 90.5, {}, 0.0),
        (90.0, 90.5, {"date": "yesterday"}, 0.0),
        (90.0, 90.5, {**DATE, "age": "90"}, 0.0),  # a proxy's copy
    ],
)
def test_the_difference_is_measured_as_precisely_as_the_date_allows(
    sent: float, received: float, headers: dict[str, str], ahead: float
) -> None:
    noon = NOON.timestamp()
    clock = GitHubClock(lambda: noon + received)
    clock.learn(headers, noon + sent)
    assert clock.ahead == pytest.approx(ahead, abs=0.01)
    assert clock.now() == pytest.approx(noon + received - ahead, abs=0.01)


def test_after_the_clock_is_corrected_no_problem_is_reported() -> None:
    wall = [NOON.timestamp() + 90]
    clock = GitHubClock(lambda: wall[0])
    clock.learn(DATE, wall[0])
    assert clock.problem is not None
    assert "90 s ahead of GitHub's" in clock.problem
    wall[0] -= 90
    clock.learn(DATE, wall[0])
    assert clock.problem is None


async def test_the_scripted_app_has_the_right_time(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", "/app", Say(body={}))
    await scripted_app.as_app().getitem("/app")
    assert scripted_app.clock.problem is None


@pytest.mark.parametrize(
    ("known", "sent", "received", "ahead"),
    [
        (0.0, 0.0, 0.5, 0.0),
        (0.0, 90.0, 92.0, 90.5),
        (0.0, -90.0, -88.0, -89.5),
        # A difference within the range is known well enough.
        (89.0, 90.0, 92.0, 89.0),
        (92.0, 90.0, 92.0, 92.0),
        (92.5, 90.0, 92.0, 90.5),
        (88.5, 90.0, 92.0, 90.5),
        # The clock may be right again.
        (90.0, 0.0, 1.0, 0.0),
        (90.0, 1.0, 3.0, 0.0),
        (90.0, -1.0, 0.0, 0.0),
        (90.0, 1.5, 3.5, 2.0),
        # It was set while we waited.
        (5.0, 90.0, 80.0, 5.0),
        (5.0, 90.0, 89.0, 89.0),
    ],
)
def test_what_one_answer_says_about_our_clock(known: float, sent: float, received: float, ahead: float) -> None:
    noon = NOON.timestamp()
    clock = GitHubClock(lambda: noon + received)
    clock.ahead = known
    for headers in ({}, {"date": "noon"}, {**DATE, "age": "0"}):
        clock.learn(headers, noon + sent)
        assert clock.ahead == known
    clock.learn(DATE, noon + sent)
    assert (clock.ahead, clock.now()) == (ahead, noon + received - ahead)


@pytest.mark.parametrize(
    ("ahead", "problem"),
    [(TOLERANCE, None), (-TOLERANCE, None), (TOLERANCE + 1, AHEAD), (-TOLERANCE - 1, BEHIND)],
)
def test_a_clock_is_wrong_beyond_the_tolerance(ahead: float, problem: str | None) -> None:
    clock = GitHubClock(lambda: 0.0)
    clock.ahead = ahead
    assert clock.problem == (problem and WRONG.format(seconds=TOLERANCE + 1, direction=problem))
