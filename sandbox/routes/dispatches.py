"""Start workflows on request.

https://docs.github.com/rest/actions/workflows#create-a-workflow-dispatch-event
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

from sandbox.errors import ApiError, not_found
from sandbox.routing import ApiResponse, Call, route
from sandbox.workflow_files import FOLDER

from .issues import REPO

TRIGGER = "workflow_dispatch"


@route("POST", f"{REPO}/actions/workflows/{{workflow_id}}/dispatches", "actions")
def dispatch(call: Call) -> ApiResponse:
    """Start a workflow in the version of a given ref. Its file must exist on the default branch too."""
    repository, file = call.repository, f"{FOLDER}{call.path['workflow_id']}"
    default = repository.resolve(repository.default_branch)
    if default is None or file not in default.files:
        raise not_found()
    ref, inputs = call.body["ref"], call.body.get("inputs", {})
    commit = repository.resolve(ref)
    if commit is None:
        raise ApiError(422, f"No ref found for: {ref}")
    triggers = _triggers(commit.files.get(file, ""))
    if TRIGGER not in triggers:
        raise ApiError(422, f"Workflow does not have '{TRIGGER}' trigger")
    declared = (triggers[TRIGGER] or {}).get("inputs", {})
    if unexpected := [name for name in inputs if name not in declared]:
        raise ApiError(422, f"Unexpected inputs provided: {json.dumps(unexpected)}")
    name = call.path["workflow_id"].rpartition(".")[0]
    run = repository.add_workflow_run(commit.sha, name, event=TRIGGER, by=call.actor, branch=ref)
    run.inputs = dict(inputs)
    return ApiResponse(status=204)


def _triggers(text: str) -> Mapping[str, Any]:
    """Return the triggers of a workflow, with their settings."""
    triggers = (YAML(typ="safe", pure=True).load(text) or {}).get("on", {})
    if isinstance(triggers, str):
        return {triggers: None}
    return triggers if isinstance(triggers, dict) else dict.fromkeys(triggers)
