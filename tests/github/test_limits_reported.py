"""Which limit an answer of GitHub reports."""

from __future__ import annotations

import pytest

from bot.github.errors import Answer
from bot.github.limits.ledger import Demand, Limit, Quota, limit_in, quota_in, resource_of
from tests.github.support import quota
from tests.github.test_limits import DATE, READ, answer


@pytest.mark.parametrize("broken", [{}, {"x-ratelimit-reset": "soon"}, {"date": "yesterday"}])
def test_headers_without_a_readable_quota_report_none(broken: dict[str, str]) -> None:
    valid = quota(10) if broken else {}
    assert quota_in(answer(200, **{**valid, **broken}), "core", moment=0.0) is None


SECONDARY = b'{"message": "x", "documentation_url": "https://docs.github.com/rest/overview/rate-limits#about-secondary-rate-limits"}'
LACKING = b'{"message": "Resource not accessible", "documentation_url": "https://docs.github.com/rest/checks/runs"}'
TALK = b'{"message": "You have exceeded a secondary rate limit", "documentation_url": "https://docs.github.com/rest"}'
GRAPHQL = b'{"errors": [{"type": "RATE_LIMITED"}]}'
RESET = int(DATE.timestamp()) + 600


@pytest.mark.parametrize(
    ("response", "limit"),
    [
        (answer(429), Limit()),
        (answer(429, retry_after="30"), Limit(retry_after=30)),
        (answer(403, retry_after="30"), Limit(retry_after=30)),
        (answer(403, **quota(0, reset=RESET)), Limit(ends_in=601)),
        (answer(429, **quota(0, reset=RESET)), Limit(ends_in=601)),
        (answer(403, retry_after="900", **quota(0, reset=RESET)), Limit(ends_in=900)),
        (answer(403, x_ratelimit_remaining="0"), Limit()),
        (answer(403, SECONDARY), Limit()),
        (answer(403, SECONDARY, **quota(4000)), Limit()),
        (answer(403), None),
        (answer(403, LACKING, **quota(4000)), None),
        (answer(403, TALK, **quota(4000)), None),
        (answer(403, b"rate-limits, but no JSON"), None),
        (answer(403, b'["secondary-rate-limits"]'), None),
        (answer(200, SECONDARY), None),
        (answer(200, GRAPHQL), None),
        (answer(404, **quota(0, reset=RESET)), None),
        (answer(503, retry_after="30"), None),
    ],
)
def test_status_headers_and_the_linked_page_show_which_limit_applies(response: Answer, limit: Limit | None) -> None:
    assert limit_in(response, READ, quota_in(response, "core", 0.0), 0.0) == limit


@pytest.mark.parametrize(
    ("body", "limit"), [(GRAPHQL, Limit()), (SECONDARY, Limit()), (b'{"data": {"title": "RATE_LIMITED"}}', None)]
)
def test_graphql_reports_limits_in_a_200(body: bytes, limit: Limit | None) -> None:
    assert limit_in(answer(200, body), Demand("graphql"), None, 0.0) == limit


@pytest.mark.parametrize(
    ("url", "resource"),
    [
        ("https://api.github.com/repos/octocat/compiler", "core"),
        ("https://api.github.com/graphql", "graphql"),
        ("https://github.example.org/api/graphql", "graphql"),
        ("https://api.github.com/search/issues?q=x", "search"),
        ("https://github.example.org/api/v3/search/code?q=x", "code_search"),
        ("https://api.github.com/repos/octocat/search/issues", "core"),
    ],
)
def test_each_address_has_its_quota(url: str, resource: str) -> None:
    assert resource_of(url) == resource


def test_the_answers_resource_wins_over_the_requested_one() -> None:
    named = quota(10, resource="search")
    retry_after = quota_in(answer(200, **named), "core", moment=0.0)
    assert retry_after is not None
    assert retry_after.resource == "search"
    del named["x-ratelimit-resource"]
    retry_after = quota_in(answer(200, **named), "graphql", moment=0.0)
    assert retry_after is not None
    assert retry_after.resource == "graphql"


@pytest.mark.parametrize(("remaining", "limit"), [(-1, Limit(ends_in=601)), (0, Limit(ends_in=601)), (1, None)])
def test_a_quota_is_used_up_at_zero(remaining: int, limit: Limit | None) -> None:
    response = answer(403, **quota(remaining, reset=RESET))
    assert limit_in(response, READ, quota_in(response, "core", 50.0), 50.0) == limit


def test_a_reset_that_has_come_needs_no_further_wait() -> None:
    response = answer(403, **quota(0, reset=int(DATE.timestamp())))
    assert limit_in(response, READ, Quota("core", 5000, 0, 0, ends=50.5), 50.0) == Limit(ends_in=0.5)


def test_an_error_of_another_type_is_no_limit_of_graphql() -> None:
    body = b'{"errors": [{"type": "NOT_FOUND", "message": "RATE_LIMITED"}, "RATE_LIMITED"]}'
    assert limit_in(answer(200, body), Demand("graphql"), None, 0.0) is None
