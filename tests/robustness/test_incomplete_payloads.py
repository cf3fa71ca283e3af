"""A payload without some field fails only the handlers that need it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox import SentDelivery
from tests.robustness.place import BOT, jobs, place, tracebacks

BODY = "cc @triager\n\n@ci help"


@dataclass(frozen=True)
class MissingField:
    """A field left out of a pull request's `pull_request.opened`, the handlers that fail, and what still works."""

    path: str
    fails: frozenset[str]
    answers: int
    reviewers: tuple[str, ...]
    statuses: int


LACKS = [
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
    place_of_it = body
    for key in parents:
        place_of_it = place_of_it[key]
    del place_of_it[name]
    delivery.payload = json.dumps(body).encode()


@pytest.mark.parametrize("lack", LACKS, ids=lambda lack: lack.path)
async def test_only_handlers_that_need_a_missing_field_fail_and_they_name_it(
    lack: MissingField, tmp_path: Path, sqlite_url: str
) -> None:
    async with place(tmp_path, sqlite_url) as here:
        repository = here.add_repository("octocat")
        here.configure([repository.full_name])
        await here.start()
        here.github.webhooks.hold()
        pull = repository.open_pull_request("hubot", "Faster", BODY)
        (message,) = here.github.webhooks.find("pull_request", "opened")
        without(message, lack.path)
        here.github.webhooks.release()
        await here.quiet()

        async def shows_what_still_works() -> None:
            assert len([c for c in pull.comments_by(BOT) if "nightjar:answer" in c.body]) == lack.answers
            assert [user.login for user in pull.requested_reviewers] == list(lack.reviewers)
            assert len(repository.all_statuses(pull.head_sha)) == lack.statuses
            (failed,) = await here.deliveries(failed=True)
            assert failed["guid"] == message.guid
            of_plans = {p["handler"]: p["job"]["text"] for p in failed["plans"] if p["job"]["state"] == "failed"}
            assert of_plans.keys() == lack.fails
            assert all(text.startswith(f"{lack.path}: is missing") for text in of_plans.values())

        await shows_what_still_works()
        logged = [e for e in here.bot.logs if e.get("level") == "error" and e.get("delivery") == message.guid]
        assert {(entry["handler"], entry["path"]) for entry in logged} == {(name, lack.path) for name in lack.fails}
        code, out, _ = await here.bot.run("deliveries", "--failed")
        assert code == 0
        assert message.guid in out
        assert f"{lack.path}: is missing" in out
        # A replay fails again, because the payload is the same.
        code, out, _ = await here.bot.run("replay", message.guid, "--config", str(here.bot.config))
        assert code == 1
        assert f"{lack.path}: is missing" in out
        await shows_what_still_works()
        assert tracebacks(here.bot) == []
        assert [job for job in jobs((await here.deliveries(failed=True))[0]) if job["state"] == "waiting"] == []
