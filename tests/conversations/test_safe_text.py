"""Foreign text in the bot's comments is shown as it is: it mentions nobody, links nothing and formats nothing."""

from __future__ import annotations

import re

import pytest

from tests.conversations.town import Town, Works
from tests.gfm import rendered

EVIL = [
    "@octocat",
    "` @octocat `",
    "``` @octocat",
    "a|b @octocat",
    "<b>@octocat</b>",
    "](https://example.org) @octocat",
    "*@octocat* #1 https://example.org",
    "--> @octocat <!--",
    "x\u202e@octocat",
]
CODE = re.compile(r"<code>.*?</code>", re.DOTALL)


def active(answer: str) -> str:
    """Return the parts of an answer that are not code, without the bot's own links to GitHub."""
    page = CODE.sub("", rendered(answer, raw_html=True))
    return re.sub(r'<a href="http://127\.0\.0\.1:[^"]*">', "<a>", page)


def check_harmless(answer: str) -> None:
    """Assert that a comment of the bot mentions nobody, links nowhere else, and contains no foreign HTML."""
    page = active(answer).replace("@\u200b", "")
    assert "@" not in page, answer
    assert "example.org" not in page.replace(":\u200b//", ""), answer
    assert "<b>" not in page, answer
    assert re.search(r"#\d", page) is None, answer


async def test_an_invalid_command_is_shown_and_has_no_effect(town: Town) -> None:
    pulls = [town.repo.open_pull_request("hubot", "Faster") for _ in EVIL]
    for pull, text in zip(pulls, EVIL, strict=True):
        pull.comment("hubot", f"@ci {text}")
        pull.comment("hubot", f'@ci rerun "{text}"')
        pull.comment("hubot", f"@ci rerun x{text}")
    await town.quiet()
    for pull, text in zip(pulls, EVIL, strict=True):
        assert town.answers(pull), text
        for answer in town.answers(pull):
            check_harmless(answer)


@pytest.mark.parametrize("name", EVIL)
async def test_names_of_workflows_jobs_and_contexts_are_shown_and_have_no_effect(site: Works, name: str) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, name, "failure", {name: "failure", "docs": "success"})
    town.repo.add_workflow_run(pull.head_sha, f"{name} 2")
    town.repo.set_status("octocat", pull.head_sha, name, "failure", name, "https://example.org/)@octocat")
    pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    run.start()
    run.finish("failure")
    for command in ("@ci rerun", "@ci rerun all", "@ci rerun docs nothing-like-it"):
        pull.comment("hubot", command)
        await town.quiet()
    assert len(town.answers(pull)) == 4
    for answer in town.answers(pull):
        check_harmless(answer)


async def test_the_answer_to_the_longest_possible_comment_fits_githubs_limit(town: Town) -> None:
    """Truncation must not break the escaping."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    for number in range(30):
        town.repo.add_workflow_run(pull.head_sha, f"@octocat {'&' * 80} {number}", "success")
    names = " ".join(f'"@octocat {number} {"|" * 150}"' for number in range(19))
    comment = pull.comment("hubot", "\n".join(f"@ci rerun {names} line-{line}" for line in range(19)))
    await town.quiet()
    assert "eyes" in pull.reactions(comment)
    (answer,) = town.answers(pull)
    assert len(answer) <= 65_536
    assert answer.endswith("*(The rest of this answer is too long for a comment.)*")
    check_harmless(answer)


async def test_githubs_own_words_are_shown_and_have_no_effect(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    for text in EVIL:
        town.github.faults.add("POST", "/repos/{owner}/{repo}/statuses/{sha}", status=422, message=text)
        pull.comment("hubot", "@ci run slow tests")
        await town.quiet()
        pull.comment("hubot", "@ci skip slow tests")
        await town.quiet()
    assert len(town.answers(pull)) == len(EVIL)
    for answer in town.answers(pull):
        check_harmless(answer)
