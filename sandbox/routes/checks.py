"""Check runs and suites.

https://docs.github.com/rest/checks
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sandbox.errors import invalid, not_accessible, not_found, refused
from sandbox.model.checks import CheckRun, CheckSuite
from sandbox.routing import ApiResponse, Call, route, too_long, without_four_bytes
from sandbox.views import checks

from .issues import REPO

TEXT_LIMIT = 65535
ANNOTATIONS_LIMIT = 50
ACTIONS_LIMIT = 3


@route("POST", f"{REPO}/check-runs", "checks")
def create_check_run(call: Call) -> ApiResponse:
    """Create a check run on a commit."""
    sha = call.full_sha("head_sha", call.body["head_sha"])
    values = _values(call)
    name = values.pop("name")
    run = call.repository.add_check_run(call.app, sha, name, by=call.actor, **values)
    return ApiResponse(checks.check_run(run), 201)


@route("PATCH", f"{REPO}/check-runs/{{check_run_id}}", "checks")
def update_check_run(call: Call) -> ApiResponse:
    """Update one of the App's own check runs; new annotations are appended to the existing ones."""
    run = _run(call)
    if run.app is not call.app:
        raise not_accessible()
    values = _values(call)
    if values.get("status") not in {None, "completed"}:
        values |= {"conclusion": None, "completed_at": None}
    run.change(call.actor, **values)
    return ApiResponse(checks.check_run(run))


def _values(call: Call) -> dict[str, Any]:
    """Return the values of a body under the names that `CheckRun` has for them; enforce GitHub's limits."""
    body, output = dict(call.body), call.body.get("output", {})
    if body.get("status") == "completed" and not body.get("conclusion"):
        raise invalid("conclusion", "a completed check run needs a conclusion", resource="CheckRun")
    for name in ("summary", "text"):
        too_long(f"output.{name}", output.get(name) or "", TEXT_LIMIT)
    annotations, actions = output.get("annotations", []), body.get("actions", [])
    if len(annotations) > ANNOTATIONS_LIMIT:
        raise invalid("annotations", f"more than {ANNOTATIONS_LIMIT} annotations in one request")
    if len(actions) > ACTIONS_LIMIT:
        raise invalid("actions", f"more than {ACTIONS_LIMIT} actions")
    for annotation in annotations:
        _check_annotation(annotation)
    plain_fields = ("name", "status", "conclusion", "external_id", "details_url", "actions")
    values = {name: body[name] for name in plain_fields if name in body}
    for name in ("started_at", "completed_at"):
        if name in body:
            values[name] = datetime.fromisoformat(body[name])
    values |= {name: output[name] for name in ("title", "summary", "text") if name in output}
    return values | {"annotations": annotations}


def _check_annotation(annotation: dict[str, Any]) -> None:
    if annotation["start_line"] < 1 or annotation["end_line"] < annotation["start_line"]:
        raise invalid("annotations", "lines begin at 1 and end_line is not before start_line")
    columns = {"start_column", "end_column"} & annotation.keys()
    if columns and annotation["start_line"] != annotation["end_line"]:
        raise invalid("annotations", "columns are allowed only within one line")
    for name in ("path", "title", "message", "raw_details"):
        without_four_bytes(f"annotations.{name}", annotation.get(name, ""), resource="CheckRun")
    too_long("annotations.title", annotation.get("title", ""), 255)
    for name in ("message", "raw_details"):
        too_long(f"annotations.{name}", annotation.get(name, ""), 64 * 1024)


@route("GET", f"{REPO}/check-runs/{{check_run_id}}", "checks")
def get_check_run(call: Call) -> ApiResponse:
    """Return one check run."""
    return ApiResponse(checks.check_run(_run(call)))


@route("GET", f"{REPO}/check-runs/{{check_run_id}}/annotations", "checks")
def list_annotations(call: Call) -> ApiResponse:
    """List the annotations of a check run."""
    run = _run(call)
    return call.page(run.annotations, lambda annotation: checks.annotation(run, annotation))


@route("GET", f"{REPO}/commits/{{ref}}/check-runs", "checks")
def list_for_commit(call: Call) -> ApiResponse:
    """List a commit's check runs: only the latest of each name, unless the query has `filter=all`."""
    sha = call.commit(call.path["ref"]).sha
    return _page(call, [suite for suite in call.repository.suites if suite.head_sha == sha])


@route("GET", f"{REPO}/check-suites/{{check_suite_id}}/check-runs", "checks")
def list_for_suite(call: Call) -> ApiResponse:
    """List the check runs of a suite."""
    return _page(call, [_suite(call)])


def _page(call: Call, suites: list[CheckSuite]) -> ApiResponse:
    query = call.query
    everything = query.get("filter", "latest") == "all"
    runs = [run for suite in suites for run in (suite.runs if everything else suite.latest)]
    if "app_id" in query:
        runs = [run for run in runs if run.app.id == query["app_id"]]
    for query_name, attribute in (("check_name", "name"), ("status", "status")):
        if query_name in query:
            runs = [run for run in runs if getattr(run, attribute) == query[query_name]]
    return call.page(runs[::-1], checks.check_run, "check_runs")


@route("GET", f"{REPO}/commits/{{ref}}/check-suites", "checks")
def list_suites(call: Call) -> ApiResponse:
    """List the check suites of a commit."""
    sha, app_id = call.commit(call.path["ref"]).sha, call.query.get("app_id")
    suites = [s for s in call.repository.suites if s.head_sha == sha and app_id in {None, s.app.id}]
    return call.page(suites, checks.check_suite, "check_suites")


@route("POST", f"{REPO}/check-suites", "checks")
def create_suite(call: Call) -> ApiResponse:
    """Create the App's check suite on a commit. Answer 200 if it exists: GitHub creates one for most pushes."""
    repository, sha = call.repository, call.full_sha("head_sha", call.body["head_sha"])
    exists = any(s.app is call.app and s.head_sha == sha for s in repository.suites)
    return ApiResponse(checks.check_suite(repository.check_suite(call.app, sha)), 200 if exists else 201)


@route("GET", f"{REPO}/check-suites/{{check_suite_id}}", "checks")
def get_suite(call: Call) -> ApiResponse:
    """Return one check suite."""
    return ApiResponse(checks.check_suite(_suite(call)))


@route("POST", f"{REPO}/check-suites/{{check_suite_id}}/rerequest", "checks")
def rerequest_suite(call: Call) -> ApiResponse:
    """Ask the suite's App to run its checks again."""
    suite = _suite(call)
    if suite.app is not call.app:
        raise refused("This check suite is not rerequestable")
    call.github.events.check_suite("rerequested", call.actor, suite, only=suite.app)
    return ApiResponse({}, 201)


def _run(call: Call) -> CheckRun:
    run_id = call.path["check_run_id"]
    runs = (run for suite in call.repository.suites for run in suite.runs)
    run = next((run for run in runs if run.id == run_id), None)
    if run is None:
        raise not_found()
    return run


def _suite(call: Call) -> CheckSuite:
    suite = next((s for s in call.repository.suites if s.id == call.path["check_suite_id"]), None)
    if suite is None:
        raise not_found()
    return suite
