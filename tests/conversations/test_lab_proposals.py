"""Somebody proposes a lab with the issue form, and a maintainer gets the lines of app.yaml that accept it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from ruamel.yaml import YAML

from bot.app.load import parse_config
from bot.cli.main import cli
from handlers.results.config import LAB_RESULTS
from tests.conversations.town import BOT, REPOSITORY, town


def answered(form: str, answers: dict[str, str]) -> str:
    """Return the body of an issue as GitHub writes it from a form's answers."""
    fields = [field for field in YAML(typ="safe").load(form)["body"] if field["type"] != "markdown"]
    labels = [field["attributes"]["label"] for field in fields]
    assert set(answers) <= set(labels)
    return "\n\n".join(f"### {label}\n\n{answers.get(label, '_No response_')}" for label in labels)


ANSWERS = {
    "Lab": "example-lab",
    "Target": "rpi-4@rack:1",
    "Device": "Two boards.\n\n### Lab\n\nother-lab",
    "Contacts": 'hubot, "Rack" <lab@example.org>, 🔧 lab',
    "Which commits you test": "pull requests on request",
    "Isolation": "A container without network.",
}


async def test_a_proposal_is_answered_with_lines_that_app_yaml_accepts(tmp_path: Path) -> None:
    path = tmp_path / ".github" / "ISSUE_TEMPLATE" / "lab.yml"
    assert CliRunner().invoke(cli, ["lab", "propose", "--write", str(path)]).exit_code == 0
    form = path.read_text()
    assert CliRunner().invoke(cli, ["lab", "propose"]).stdout == form
    assert {"name", "description", "title", "body"} == set(YAML(typ="safe").load(form))
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        issue = place.repo.open_issue("somebody", "[lab] Example", answered(form, ANSWERS))
        issue.comment("hubot", "Nice! Use `@ci lab accept`.")
        refused = issue.comment("hubot", "@ci lab accept")
        await place.quiet()
        assert [comment.body.split("\n", 1)[1] for comment in issue.comments_by(BOT)] == [
            "You need maintain access to accept a lab."
        ]
        assert issue.reactions(refused) == ["confused"]
        accepted = issue.comment("octocat", "Welcome!\n\n@ci lab accept")
        await place.quiet()
        answer = issue.comments_by(BOT)[-1].body
        assert issue.reactions(accepted) == ["+1"]
        assert "Nothing is changed yet." in answer
        assert "nightjar lab token create example-lab --expires 90d" in answer
        lines = answer.split("```text\n")[1].split("\n```")[0]
        config = parse_config(lines.encode(), "app.yaml").repository(REPOSITORY)
        results = config.of(LAB_RESULTS) if config else None
        assert results is not None
        lab = results.labs["example-lab"]
        assert lab.contacts == ("hubot", '"Rack" <lab@example.org>', "🔧 lab")
        assert lab.contact_ids == (place.github.user("somebody").id,)
        assert lab.targets["rpi-4@rack:1"].tier == 2

        problems = {
            "The field *Lab* is `../x`. It must be a name of letters": ANSWERS | {"Lab": "../x"},
            "The field *Target* is empty.": ANSWERS | {"Target": "_No response_"},
            "The field *Contacts* is `,`.": ANSWERS | {"Contacts": ","},
            "It must be 1 to 20 names or addresses": ANSWERS | {"Contacts": "a," * 15_000},
            "The field *Which commits you test* is `all`.": ANSWERS | {"Which commits you test": "all"},
            "The field *Isolation* is empty.": {key: value for key, value in ANSWERS.items() if key != "Isolation"},
            "This issue doesn't have the fields of *Propose a lab*": None,
        }
        for problem, answers in problems.items():
            wrong = place.repo.open_issue("somebody", "[lab] Example", answered(form, answers) if answers else "Hello")
            wrong.comment("octocat", "@ci lab accept")
            await place.quiet()
            assert problem in wrong.comments_by(BOT)[-1].body
        pull = place.repo.open_pull_request("octocat", "Faster")
        pull.comment("octocat", "@ci lab accept")
        await place.quiet()
        assert "`results`" in pull.comments_by(BOT)[-1].body
