"""Create deliveries for the load, as the sandbox GitHub would send them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sandbox import GitHubSandbox, Repository, SentDelivery

REPOSITORY = "octocat/compiler"
SECRET = "only-the-benchmarks-know-this-secret"
COMMAND = "@ci help"
COMMENT = """\
Thanks, this looks good to me. Two things that I would change before it goes in:

- the inner loop reads `stride` again in every iteration, although it is known before;
- the test covers widths that are multiples of the vector's, and no other.

```python
for width in (1, 3, 4, 7, 8, 31, 32, 33):
    check(build(width, target="llvm"), reference(width))
```
"""
DESCRIPTION = "It reads less."
WORDS = (
    "the",
    "inner",
    "loop",
    "reads",
    "stride",
    "width",
    "of",
    "a",
    "vector",
    "lowering",
    "operator",
    "target",
    "device",
    "schedule",
    "memory",
    "is",
    "now",
    "known",
    "before",
    "tests",
    "cover",
    "float16",
    "in",
    "kernel",
)
LONG = 560
"""The words of a description. With them, deliveries about pull requests have 13 kB, like a real project's."""
SEED = 20_261_124

UNWANTED, COMMENTS, COMMANDS = "unwanted", "comments", "commands"
CYCLE, COMMENTS_AT, COMMAND_AT = 20, (4, 10, 16), 19
"""The places of comments and of the command among 20 deliveries of the mix. No handler accepts the others."""


@dataclass(frozen=True, slots=True)
class Template:
    """A delivery whose copies have different numbers, so that each is about a different subject.

    The number goes between the parts of the body. Copies use `numbers` in turn; without them, each gets a new number.
    """

    event: str
    parts: tuple[bytes, ...]
    numbers: tuple[int, ...] = ()

    @classmethod
    def of(cls, delivery: SentDelivery, numbers: Sequence[int] = ()) -> Template:
        """Create a template from a delivery about a comment or a commit status."""
        subject = delivery.body.get("comment", delivery.body)
        head, tail = delivery.payload.split(b'"id":%d,' % subject["id"], 1)
        return cls(delivery.event, (head + b'"id":', b"," + tail), tuple(numbers))

    def body(self, number: int) -> bytes:
        """Return the body of the copy with a number."""
        return (b"%d" % number).join(self.parts)


def templates(
    github: GitHubSandbox, repo: Repository, pulls: int, *, long: bool = False, commands: int = 0, people: int = 1
) -> dict[str, list[Template]]:
    """Create deliveries about some pull requests, without sending them.

    `unwanted` are commit statuses and deleted comments, which no handler accepts. `comments` are new comments without a
    command, which handlers read and ignore. `commands` is the number of commands on each pull request, `people` the
    number of their authors. With `long` descriptions, bodies have 12 kB on average, otherwise 10.
    """
    made: dict[str, list[Template]] = {UNWANTED: [], COMMENTS: [], COMMANDS: []}
    chance = random.Random(SEED)
    logins = ["hubot", *(f"hubot-{number}" for number in range(1, people))]
    for login in logins:
        repo.set_role(login, "write")
    sent = github.webhooks.deliveries
    first = len(sent)
    github.webhooks.hold()
    for number in range(pulls):
        description = " ".join(chance.choices(WORDS, k=LONG)) if long else DESCRIPTION
        pull = repo.open_pull_request("hubot", f"Make it faster ({number})", description)
        repo.set_status("hubot", pull.head_sha, "gpu/pr-head", "pending", "Queued")
        comment = pull.comment("hubot", COMMENT)
        pull.delete_comment(comment)
        for delivery in sent[first:]:
            if delivery.event in ("status", "issue_comment"):
                kind = COMMENTS if delivery.action == "created" else UNWANTED
                made[kind].append(Template.of(delivery))
        if commands:
            ids = [pull.comment(logins[number % people], COMMAND).id for _ in range(commands)]
            made[COMMANDS].append(Template.of(sent[-1], ids))
        github.webhooks.release(lambda _: [])
        github.webhooks.hold()
        del sent[first:]  # the bot would request redelivery of these, but they were not meant to arrive
    github.webhooks.release(lambda _: [])
    return made


def mixed(made: dict[str, list[Template]]) -> list[Template]:
    """Put deliveries in the order of the mix: of twenty, sixteen without a handler, three comments and a command."""
    turns = dict.fromkeys(made, 0)
    order = []
    for place in range(CYCLE * max(len(made[COMMANDS]), 1)):
        within = place % CYCLE
        kind = COMMANDS if within == COMMAND_AT else COMMENTS if within in COMMENTS_AT else UNWANTED
        order.append(made[kind][turns[kind] % len(made[kind])])
        turns[kind] += 1
    return order


def write(path: Path, order: Sequence[Template]) -> None:
    """Store templates in the order in which they are sent, repeatedly.

    The lines are: the number of templates; for each its event, its numbers, and its parts with their lengths; then the
    order, as places. A count precedes each list.
    """
    places: dict[int, int] = {}
    unique: list[Template] = []
    for template in order:
        if id(template) not in places:
            places[id(template)] = len(unique)
            unique.append(template)
    with path.open("wb") as file:
        _write_lines(file, [len(unique)])
        for template in unique:
            _write_lines(file, [template.event, len(template.numbers), *template.numbers, len(template.parts)])
            for part in template.parts:
                file.write(b"%d\n%b\n" % (len(part), part))
        _write_lines(file, [len(order), *(places[id(template)] for template in order)])


def _write_lines(file: BinaryIO, lines: Iterable[object]) -> None:
    file.write("".join(f"{line}\n" for line in lines).encode())


def read(path: Path) -> list[Template]:
    """Read the templates that `write` stored."""
    with path.open("rb") as file:
        unique = [_read_template(file) for _ in range(int(file.readline()))]
        return [unique[int(file.readline())] for _ in range(int(file.readline()))]


def _read_template(file: BinaryIO) -> Template:
    event = file.readline().decode().rstrip("\n")
    numbers = tuple(int(file.readline()) for _ in range(int(file.readline())))
    parts = []
    for _ in range(int(file.readline())):
        parts.append(file.read(int(file.readline())))
        file.readline()
    return Template(event, tuple(parts), numbers)
