"""The API: its answers, its errors, and that its description is correct."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from bot.core.errors import TryAgain
from tests.web.conftest import DECISION, Site

DECISION_PATH = "/api/v1/repos/octocat/compiler/pulls/42/decision"
COMMIT_PATH = f"/api/v1/repos/octocat/compiler/commits/{DECISION['sha']}/decision"


async def test_ci_gets_the_decision_for_the_head(site: Site) -> None:
    site.decisions["octocat/compiler", 42] = DECISION
    status, headers, body = await site.get(DECISION_PATH)
    assert (status, json.loads(body)) == (200, DECISION)
    assert headers["Content-Type"].startswith("application/json")
    assert headers["Cache-Control"] == "no-store"


async def test_ci_may_name_the_commit_that_it_builds(site: Site) -> None:
    site.decisions["octocat/compiler", 42] = DECISION
    status, _, body = await site.get(f"{DECISION_PATH}?sha={'a' * 40}")
    assert (status, json.loads(body)["sha"]) == (200, "a" * 40)
    assert (await site.get(f"{DECISION_PATH}?sha="))[0] == 200


async def test_ci_gets_the_decision_for_a_commit_of_a_branch(site: Site) -> None:
    site.decisions["octocat/compiler", f"{DECISION['sha']}@"] = DECISION
    site.decisions["octocat/compiler", f"{DECISION['sha']}@release/1.0"] = {**DECISION, "sha": "b" * 40}
    status, headers, body = await site.get(COMMIT_PATH)
    assert (status, json.loads(body), headers["Cache-Control"]) == (200, DECISION, "no-store")
    status, _, body = await site.get(f"{COMMIT_PATH}?branch=release%2F1.0")
    assert (status, json.loads(body)["sha"]) == (200, "b" * 40)


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/api/v1/repos/octocat/compiler/pulls/43/decision", 404, "no such pull request"),
        ("/api/v1/repos/octocat/compiler/pulls/0/decision", 400, "whole number"),
        ("/api/v1/repos/octocat/compiler/pulls/4.2/decision", 400, "whole number"),
        ("/api/v1/repos/octocat/compiler/pulls/-1/decision", 400, "whole number"),
        ("/api/v1/repos/octocat/compiler/pulls/99999999999/decision", 400, "whole number"),
        ("/api/v1/repos/octocat/compiler/pulls/٤٢/decision", 400, "whole number"),
        (f"{DECISION_PATH}?sha=main", 400, "full SHA"),
        (f"{DECISION_PATH}?sha=6dcb09b", 400, "full SHA"),
        (f"{DECISION_PATH}?sha={'A' * 40}", 400, "full SHA"),
        ("/api/v1/repos/octo%20cat/compiler/pulls/42/decision", 400, "repository"),
        ("/api/v1/repos/octocat/%2e%2e%2fx/pulls/42/decision", 400, "repository"),
        (f"/api/v1/repos/octocat/compiler/commits/{'d' * 40}/decision", 404, "no such commit"),
        ("/api/v1/repos/octocat/compiler/commits/main/decision", 400, "full SHA"),
        (f"/api/v1/repos/octocat/compiler/commits/{'A' * 40}/decision", 400, "full SHA"),
        (f"/api/v1/repos/octocat/compiler/commits/{'a' * 41}/decision", 400, "full SHA"),
        (f"{COMMIT_PATH}?branch=a%20b", 400, "name of a branch"),
        (f"{COMMIT_PATH}?branch=a%0ab", 400, "name of a branch"),
        (f"{COMMIT_PATH}?branch={'b' * 245}", 400, "name of a branch"),
        (f"{COMMIT_PATH}?branch=refs/heads/main", 400, "name of a branch"),
        ("/api/v1/nothing", 404, "openapi.json"),
        ("/api/nothing", 404, "openapi.json"),
        ("/nothing", 404, "openapi.json"),
    ],
)
async def test_errors_are_problem_details(site: Site, path: str, status: int, detail: str) -> None:
    answered, headers, body = await site.get(path)
    problem = json.loads(body)
    assert (answered, problem["status"]) == (status, status)
    assert headers["Content-Type"].startswith("application/problem+json")
    assert detail in problem["detail"]
    assert problem["type"] == "about:blank"


async def test_a_wrong_method_is_answered_with_the_allowed_ones(site: Site) -> None:
    status, headers, body = await site.get(DECISION_PATH, method="DELETE")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert json.loads(body)["title"] == "Method Not Allowed"


async def test_ci_learns_when_to_ask_again_if_github_does_not_answer(site: Site) -> None:
    site.decisions["octocat/compiler", 42] = TryAgain("GitHub answered 502 to ghs_secret", retry_in=6.2)
    status, headers, body = await site.get(DECISION_PATH)
    assert (status, headers["Retry-After"]) == (503, "7")
    assert b"ghs_" not in body


@pytest.mark.parametrize("error", [KeyError("token"), RuntimeError("the secret is hunter2")])
async def test_a_fault_of_ours_is_a_500_without_details(site: Site, error: Exception) -> None:
    site.decisions["octocat/compiler", 42] = error
    status, headers, body = await site.get(DECISION_PATH)
    assert status == 500
    assert headers["Content-Type"].startswith("application/problem+json")
    assert b"hunter2" not in body
    assert b"token" not in body


async def test_an_answer_that_does_not_match_its_description_is_never_sent(site: Site) -> None:
    site.decisions["octocat/compiler", 42] = {**DECISION, "sha": "main"}
    assert (await site.get(DECISION_PATH))[0] == 500


async def described(site: Site) -> dict[str, Any]:
    status, _, body = await site.get("/api/v1/openapi.json")
    assert status == 200
    document: dict[str, Any] = json.loads(body)
    return document


async def test_every_route_is_described_and_nothing_else_is(site: Site) -> None:
    document = await described(site)
    in_document = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    served = {(route.method, str(route.resource.canonical)) for route in site.app.router.routes() if route.resource}
    assert in_document == {(method, path) for method, path in served if method != "HEAD"}


async def test_the_description_is_valid(site: Site) -> None:
    document = await described(site)
    assert document["openapi"] == "3.1.0"
    assert document["info"] == {"title": "Nightjar", "version": "1.2.3"}
    for name, schema in document["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    names = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))
    for path, item in document["paths"].items():
        for operation in item.values():
            in_path = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert in_path == set(re.findall(r"\{(\w+)\}", path))
    for reference in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]


def conforms(document: dict[str, Any], method: str, path: str, status: int, kind: str, body: bytes) -> None:
    """Fail unless the document describes an answer."""
    responses = document["paths"][path][method]["responses"]
    content = responses.get(str(status), responses["default"])["content"]
    assert kind in content, f"{method} {path} {status}: {kind}"
    schema = content[kind]["schema"]
    if kind != "text/plain":
        jsonschema_rs.validate({**schema, "components": document["components"]}, json.loads(body))


@pytest.mark.parametrize(
    ("path", "template", "expected"),
    [
        ("/healthz", "/healthz", 200),
        ("/readyz", "/readyz", 503),
        ("/metrics", "/metrics", 200),
        ("/api/v1/openapi.json", "/api/v1/openapi.json", 200),
        (DECISION_PATH, "/api/v1/repos/{owner}/{repo}/pulls/{n}/decision", 200),
        (DECISION_PATH.replace("42", "43"), "/api/v1/repos/{owner}/{repo}/pulls/{n}/decision", 404),
        (DECISION_PATH.replace("42", "x"), "/api/v1/repos/{owner}/{repo}/pulls/{n}/decision", 400),
        (DECISION_PATH.replace("42", "44"), "/api/v1/repos/{owner}/{repo}/pulls/{n}/decision", 503),
        (DECISION_PATH.replace("42", "45"), "/api/v1/repos/{owner}/{repo}/pulls/{n}/decision", 500),
        (COMMIT_PATH, "/api/v1/repos/{owner}/{repo}/commits/{sha}/decision", 200),
        (COMMIT_PATH.replace("6dcb", "ffff"), "/api/v1/repos/{owner}/{repo}/commits/{sha}/decision", 404),
        (COMMIT_PATH.replace("6dcb", "x"), "/api/v1/repos/{owner}/{repo}/commits/{sha}/decision", 400),
    ],
)
async def test_every_answer_conforms_to_its_description(site: Site, path: str, template: str, expected: int) -> None:
    site.decisions.update(
        {
            ("octocat/compiler", 42): DECISION,
            ("octocat/compiler", f"{DECISION['sha']}@"): DECISION,
            ("octocat/compiler", 44): TryAgain("later"),
            ("octocat/compiler", 45): RuntimeError("fault"),
        }
    )
    status, headers, body = await site.get(path)
    assert status == expected
    conforms(await described(site), "get", template, status, headers["Content-Type"].partition(";")[0], body)


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [(b"{}", {}, 202), (b"[]", {}, 400), (b"{}", {"X-Hub-Signature-256": "sha256=0"}, 401)],
)
async def test_the_webhooks_answers_conform_too(
    site: Site, body: bytes, headers: dict[str, str], expected: int
) -> None:
    sent = {**site.headers(body), **headers}
    async with site.client.post(f"{site.url}/webhook", data=body, headers=sent) as answer:
        assert answer.status == expected
        kind = answer.headers["Content-Type"].partition(";")[0]
        conforms(await described(site), "post", "/webhook", answer.status, kind, await answer.read())
