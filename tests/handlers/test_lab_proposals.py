"""The issue form of a lab that proposes itself, read again from an issue that GitHub wrote with it."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from handlers.labs.proposals import texts
from handlers.labs.proposals.form import (
    MOST_CONTACTS,
    LabProposal,
    NotAProposal,
    accepted_text,
    app_yaml_of,
    issue_form,
    read_proposal,
)

ANSWERS = {
    texts.LAB: "example-lab",
    texts.TARGET: "hexagon-v73",
    texts.DEVICE: "Two boards\n### that run Linux",
    texts.CONTACTS: "@octocat, lab@example.org",
    texts.TIER: texts.TIERS[1],
    texts.ISOLATION: "A network of its own",
}
PROPOSAL = LabProposal("example-lab", "hexagon-v73", ("@octocat", "lab@example.org"), 2)


def issue(**changed: str | None) -> str:
    """Return the body that GitHub writes; None leaves a field out."""
    answers: dict[str, Any] = ANSWERS | changed
    return "\n\n".join(f"### {label}\n\n{answer}" for label, answer in answers.items() if answer is not None)


def test_the_form_asks_for_each_field_and_requires_all_but_the_isolation() -> None:
    form = YAML(typ="safe").load(issue_form())
    introduction, *fields = form["body"]
    assert (form["name"], form["description"], form["title"]) == (
        texts.FORM_NAME,
        texts.FORM_DESCRIPTION,
        texts.FORM_TITLE,
    )
    assert introduction == {"type": "markdown", "attributes": {"value": texts.INTRODUCTION}}
    assert [(field["type"], field["id"], field["validations"]["required"]) for field in fields] == [
        ("input", "lab", True),
        ("input", "target", True),
        ("textarea", "device", True),
        ("input", "contacts", True),
        ("dropdown", "which", True),
        ("textarea", "isolation", False),
    ]
    assert [field["attributes"] for field in fields] == [
        {"label": texts.LAB, "description": texts.LAB_HELP, "placeholder": "example-lab"},
        {"label": texts.TARGET, "description": texts.TARGET_HELP, "placeholder": "hexagon-v73"},
        {"label": texts.DEVICE, "description": texts.DEVICE_HELP},
        {"label": texts.CONTACTS, "description": texts.CONTACTS_HELP, "placeholder": "@octocat, lab@example.org"},
        {"label": texts.TIER, "description": texts.TIER_HELP, "options": list(texts.TIERS)},
        {"label": texts.ISOLATION, "description": texts.ISOLATION_HELP},
    ]
    assert max(map(len, issue_form().splitlines())) > 100, "a sentence is one line"


@pytest.mark.parametrize(
    ("body", "proposal"),
    [
        (issue(), PROPOSAL),
        (f"{issue()}\n\n### {texts.LAB}\n\nanother", PROPOSAL),
        (f"Hello\n{issue()}".replace("\n", "\r\n"), PROPOSAL),
        (issue(Device=None), PROPOSAL),
        (
            issue(Contacts="octocat", Isolation="_No response_", **{texts.TIER: texts.TIERS[0]}),
            LabProposal("example-lab", "hexagon-v73", ("octocat",), 3),
        ),
        (issue(**{texts.TIER: texts.TIERS[2]}), LabProposal(*(PROPOSAL.lab, PROPOSAL.target, PROPOSAL.contacts), 1)),
    ],
)
def test_a_proposal_is_the_first_answer_below_each_label(body: str, proposal: LabProposal) -> None:
    assert read_proposal(body) == proposal


def test_an_issue_without_a_field_is_no_proposal() -> None:
    for label in (texts.LAB, texts.TARGET, texts.CONTACTS, texts.TIER):
        with pytest.raises(NotAProposal) as refusal:
            read_proposal(issue(**{label: None}))
        assert str(refusal.value) == texts.NOT_A_PROPOSAL


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({texts.TIER: "always"}, f"The field *{texts.TIER}* is `always`. It must be {', '.join(texts.TIERS)}."),
        ({texts.LAB: "a/b"}, f"The field *Lab* is `a/b`. It must be {texts.LAB_WORDS}."),
        ({texts.LAB: "_No response_"}, f"The field *Lab* is empty. It must be {texts.LAB_WORDS}."),
        ({texts.TARGET: "!" * 101}, f"The field *Target* is `{'!' * 99}…`. It must be "),
        ({texts.TARGET: "!" * 100}, f"The field *Target* is `{'!' * 100}`. It must be "),
        ({texts.CONTACTS: " , "}, "The field *Contacts* is `,`. It must be 1 to 20 names or addresses separated by "),
        ({texts.CONTACTS: ",".join(["a"] * (MOST_CONTACTS + 1))}, "It must be 1 to 20 names"),
        ({texts.CONTACTS: f"octocat, {'x' * 10_000}"}, "It must be 1 to 20 names"),
        ({texts.ISOLATION: "_No response_"}, texts.NO_ISOLATION.format(field="Isolation")),
        ({texts.ISOLATION: None}, texts.NO_ISOLATION.format(field="Isolation")),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_what_it_must_be(changed: dict[str, str], reason: str) -> None:
    with pytest.raises(NotAProposal) as refusal:
        read_proposal(issue(**changed))
    assert reason in str(refusal.value)


def test_as_many_contacts_as_are_allowed_are_read() -> None:
    assert len(read_proposal(issue(Contacts=",".join(["a"] * MOST_CONTACTS))).contacts) == MOST_CONTACTS


@pytest.mark.parametrize(("tier", "value"), [(1, {"tier": 1}), (2, {"tier": 2}), (3, "nightly")])
def test_the_lines_of_app_yaml_have_the_lab_its_target_its_contacts_and_who_proposed_it(tier: int, value: Any) -> None:
    proposal = LabProposal("lab", "a", ('Größe "x"', "@octocat"), tier)
    lines = app_yaml_of(proposal, "octocat/compiler", 583231)
    assert "Größe" in lines
    lab = {"targets": {"a": value}, "contacts": ['Größe "x"', "@octocat"], "contact_ids": [583231]}
    assert YAML(typ="safe").load(lines) == {"repositories": {"octocat/compiler": {"results": {"labs": {"lab": lab}}}}}
    answer = accepted_text(proposal, "octocat/compiler", 583231)
    assert "To accept the lab `lab`, add" in answer
    assert f"\n{lines}\n" in answer
    assert "\nnightjar lab token create lab --expires 90d\n" in answer
    assert "`nightjar-lab doctor --target a`" in answer
