"""Deliveries to load the bot with, as the sandbox GitHub would send them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbox import Delivery, GitHubSandbox, Repository

REPOSITORY = "octocat/compiler"
SECRET = "only-the-benchmarks-know-this-secret"
COMMENT = """\
Thanks, this looks good to me. Two things that I would change before it goes in:

- the inner loop reads `stride` again in every iteration, although it is known before;
- the test covers widths that are multiples of the vector's, and no other.

```python
for width in (1, 3, 4, 7, 8, 31, 32, 33):
    check(build(width, target="llvm"), reference(width))
```
"""


@dataclass(frozen=True, slots=True)
class Template:
    """A delivery whose subject's id is to be replaced, so that no two are about the same thing."""

    event: str
    body: str
    number: str

    @classmethod
    def of(cls, delivery: Delivery) -> Template:
        """Make a template of a delivery about a comment or a commit status."""
        subject = delivery.body.get("comment", delivery.body)
        return cls(delivery.event, delivery.payload.decode(), f'"id":{subject["id"]},')


def templates(github: GitHubSandbox, repo: Repository, pulls: int) -> dict[str, list[Template]]:
    """Make deliveries about so many pull requests, without sending them.

    `unwanted`: commit statuses and deleted comments, which no handler asks for; `comments`: new comments without a
    command, which handlers look at in vain.
    """
    made: dict[str, list[Template]] = {"unwanted": [], "comments": []}
    sent = github.webhooks.deliveries
    first = len(sent)
    github.webhooks.hold()
    for number in range(pulls):
        pull = repo.open_pull_request("hubot", f"Make it faster ({number})", "It reads less.")
        repo.set_status("hubot", pull.head_sha, "gpu/pr-head", "pending", "Queued")
        comment = pull.comment("hubot", COMMENT)
        pull.delete_comment(comment)
    for delivery in sent[first:]:
        if delivery.event in ("status", "issue_comment"):
            kind = "comments" if delivery.action == "created" else "unwanted"
            made[kind].append(Template.of(delivery))
    github.webhooks.release(lambda _: [])
    del sent[first:]  # GitHub offers again what it could not deliver, and these were never meant to be
    return made


def write(path: Path, made: Iterable[Template]) -> None:
    """Store templates for the load generator."""
    path.write_text(json.dumps([[one.event, one.body, one.number] for one in made]), encoding="utf-8")


def read(path: Path) -> list[Template]:
    """Read what `write` has stored."""
    return [Template(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]
