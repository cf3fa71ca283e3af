"""The issue form with which a lab proposes itself, and what a proposal says. Pure.

GitHub writes the answers of a form into the issue's body, each below its label as a heading:

    ### Lab

    example-lab

    ### Isolation

    _No response_

https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-issue-forms
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

from nightjar_formats.model import TARGET_WORDS
from pydantic import ValidationError
from ruamel.yaml import YAML

from bot.core.adapters import adapter_of
from bot.github.text.markdown import code, fenced, truncate
from bot.results.settings.results import Contact, LabName
from bot.results.settings.targets import EVERY_PUSH, NIGHTLY_ONLY, ON_REQUEST, TargetName
from handlers.labs.proposals import texts

FORM_PATH = ".github/ISSUE_TEMPLATE/lab.yml"
NO_RESPONSE = "_No response_"
HEADING = "### "
LABELS = (texts.LAB, texts.TARGET, texts.DEVICE, texts.CONTACTS, texts.TIER, texts.ISOLATION)
MOST_CONTACTS = 20
MOST_QUOTED = 100
"""Characters of a wrong answer that is quoted."""


class NotAProposal(Exception):
    """An issue proposes no lab, or a field is wrong; the text says so to a maintainer."""


@dataclass(frozen=True, slots=True)
class LabProposal:
    """A lab that somebody proposes; `tier` is as in app.yaml."""

    lab: str
    target: str
    contacts: tuple[str, ...]
    tier: int


def issue_form() -> str:
    """Return the issue form as YAML."""
    document = {
        "name": texts.FORM_NAME,
        "description": texts.FORM_DESCRIPTION,
        "title": texts.FORM_TITLE,
        "body": [
            {"type": "markdown", "attributes": {"value": texts.INTRODUCTION}},
            _field("input", texts.LAB, texts.LAB_HELP, placeholder="example-lab"),
            _field("input", texts.TARGET, texts.TARGET_HELP, placeholder="hexagon-v73"),
            _field("textarea", texts.DEVICE, texts.DEVICE_HELP),
            _field("input", texts.CONTACTS, texts.CONTACTS_HELP, placeholder="@octocat, lab@example.org"),
            _field("dropdown", texts.TIER, texts.TIER_HELP, options=list(texts.TIERS)),
            _field("textarea", texts.ISOLATION, texts.ISOLATION_HELP, is_required=False),
        ],
    }
    written = StringIO()
    yaml = YAML()
    yaml.width = 4096
    yaml.dump(document, written)
    return written.getvalue()


def _field(kind: str, label: str, description: str, *, is_required: bool = True, **attributes: object) -> object:
    return {
        "type": kind,
        "id": label.split()[0].lower(),
        "attributes": {"label": label, "description": description, **attributes},
        "validations": {"required": is_required},
    }


def read_proposal(body: str) -> LabProposal:
    """Read the body of an issue that was opened with the form. Raises `NotAProposal`."""
    answers = _answers(body)
    if not answers.keys() >= {texts.LAB, texts.TARGET, texts.CONTACTS, texts.TIER}:
        raise NotAProposal(texts.NOT_A_PROPOSAL)
    tiers = dict(zip(texts.TIERS, (NIGHTLY_ONLY, ON_REQUEST, EVERY_PUSH), strict=True))
    tier = tiers.get(answers[texts.TIER])
    if tier is None:
        raise _wrong(texts.TIER, answers, ", ".join(texts.TIERS))
    if tier < NIGHTLY_ONLY and not answers.get(texts.ISOLATION):
        raise NotAProposal(texts.NO_ISOLATION.format(field=texts.ISOLATION))
    contacts = tuple(part for part in map(str.strip, answers[texts.CONTACTS].split(",")) if part)
    if not 1 <= len(contacts) <= MOST_CONTACTS or not all(_is_valid(contact, Contact) for contact in contacts):
        raise _wrong(texts.CONTACTS, answers, texts.NO_CONTACTS.format(most=MOST_CONTACTS))
    if not _is_valid(answers[texts.LAB], LabName):
        raise _wrong(texts.LAB, answers, texts.LAB_WORDS)
    if not _is_valid(answers[texts.TARGET], TargetName):
        raise _wrong(texts.TARGET, answers, TARGET_WORDS)
    return LabProposal(answers[texts.LAB], answers[texts.TARGET], contacts, tier)


def _answers(body: str) -> Mapping[str, str]:
    """Return the first answer below each label."""
    answers: dict[str, list[str]] = {}
    label = ""
    for line in body.splitlines():
        heading = line.removeprefix(HEADING).strip() if line.startswith(HEADING) else ""
        if heading in LABELS and heading not in answers:
            label = heading
            answers[label] = []
        elif label:
            answers[label].append(line)
    stripped = {name: "\n".join(lines).strip() for name, lines in answers.items()}
    return {name: "" if text == NO_RESPONSE else text for name, text in stripped.items()}


def _is_valid(text: str, kind: Any) -> bool:
    try:
        adapter_of(kind).validate_python(text)
    except ValidationError:
        return False
    return True


def _wrong(field: str, answers: Mapping[str, str], words: str) -> NotAProposal:
    answer = answers[field]
    value = code(truncate(answer, MOST_QUOTED)) if answer else texts.EMPTY
    return NotAProposal(texts.BAD_FIELD.format(field=field, value=value, words=words))


def app_yaml_of(proposal: LabProposal, repository: str, proposer_id: int) -> str:
    """Return the lines of app.yaml that accept a lab for `owner/name`; `proposer_id` may pause its targets."""
    # A JSON string is a YAML string, but for escapes of half surrogate pairs.
    tier = "nightly" if proposal.tier == NIGHTLY_ONLY else f"{{tier: {proposal.tier}}}"
    contacts = ", ".join(json.dumps(contact, ensure_ascii=False) for contact in proposal.contacts)
    return f"""\
repositories:
  {repository}:
    results:
      labs:
        {json.dumps(proposal.lab)}:
          targets: {{{json.dumps(proposal.target)}: {tier}}}
          contacts: [{contacts}]
          contact_ids: [{proposer_id}]"""


def accepted_text(proposal: LabProposal, repository: str, proposer_id: int) -> str:
    """Return the answer to `@ci lab accept`."""
    return texts.ACCEPTED.format(
        lab=code(proposal.lab),
        lines=fenced(app_yaml_of(proposal, repository, proposer_id)),
        command=fenced(f"nightjar lab token create {proposal.lab} --expires 90d"),
        target=proposal.target,
    )
