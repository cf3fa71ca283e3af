"""A payload without some field fails only the handlers that need it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox import SentDelivery
from tests.robustness.place import BOT, jobs, open_place, tracebacks

BODY = "cc @triager\n\n@ci help"


@dataclass(frozen=True)
class MissingField:
    """A field left out of a pull request's `pull_request.opened`, the handlers that fail, and what still works."""

    path: str
    fails: frozenset[str]
    answers: int
    reviewers: tuple[str, ...]
    statuses: int


MISSING_FIELDS = [
    MissingField("pull_request.id", frozenset({"commands"}), answers=0, reviewers=("triager",), statuses=1),
    MissingField(
        "pull_request.base.ref", frozenset({"slow-tests", "cc-reviewers"}), answers=1, reviewers=(), statuses=0
    ),
    MissingField(
        "pull_request.head.sha",
        frozenset({"slow-tests", "cc-reviewers", "repository-file-check"}),
        answers=1,
        reviewers=(),
        statuses=0,
    ),
]


def without(delivery: SentDelivery, path: str) -> None:
    """Leave a field out of a delivery's payload."""
    body = delivery.body
    *parents, name = path.split(".")
    parent = body
    for key in parents:
        parent = parent[key]
    del parent[name]
    delivery.payload = json.dumps(body).encode()


@pytest.mark.parametrize("missing_field", MISSING_FIELDS, ids=lambda missing_field: missing_field.path)
async def test_only_handlers_that_need_a_missing_field_fail_and_they_name_it(
    missing_field: MissingField, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        place.github.webhooks.hold()
        pull = repository.open_pull_request("hubot", "Faster", BODY)
        (delivery,) = place.github.webhooks.find("pull_request", "opened")
        without(delivery, missing_field.path)
        place.github.webhooks.release()
        await place.quiet()

        async def shows_what_still_works() -> None:
            assert len([c for c in pull.comments_by(BOT) if "nightjar:answer" in c.body]) == missing_field.answers
            assert [user.login for user in pull.requested_reviewers] == list(missing_field.reviewers)
            assert len(repository.all_statuses(pull.head_sha)) == missing_field.statuses
            (failed,) = await place.deliveries(failed=True)
            assert failed["guid"] == delivery.guid
            of_plans = {p["handler"]: p["job"]["text"] for p in failed["plans"] if p["job"]["state"] == "failed"}
            assert of_plans.keys() == missing_field.fails
            assert all(text.startswith(f"{missing_field.path}: is missing") for text in of_plans.values())

        await shows_what_still_works()
        logged = [e for e in place.bot.logs if e.get("level") == "error" and e.get("delivery") == delivery.guid]
        assert {(entry["handler"], entry["path"]) for entry in logged} == {
            (name, missing_field.path) for name in missing_field.fails
        }
        code, stdout, _ = await place.bot.run("deliveries", "--failed")
        assert code == 0
        assert delivery.guid in stdout
        assert f"{missing_field.path}: is missing" in stdout
        # A replay fails again, because the payload is the same.
        code, stdout, _ = await place.bot.run("replay", delivery.guid, "--config", str(place.bot.config))
        assert code == 1
        assert f"{missing_field.path}: is missing" in stdout
        await shows_what_still_works()
        assert tracebacks(place.bot) == []
        assert [job for job in jobs((await place.deliveries(failed=True))[0]) if job["state"] == "waiting"] == []
