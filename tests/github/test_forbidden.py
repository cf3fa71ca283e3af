"""What GitHub's sentence says about a 403."""

from __future__ import annotations

import pytest

from bot.github.forbidden import Cause, cause_of, is_generic


@pytest.mark.parametrize(
    ("sentence", "cause"),
    [
        ("Repository was archived so is read-only.", Cause.ARCHIVED),
        ("Repository was archived so is read-only. The issue is locked.", Cause.ARCHIVED),
        ("Unable to create comment because issue is locked.", Cause.LOCKED),
        (
            "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without "
            "`workflows` permission",
            Cause.WORKFLOWS,
        ),
        ("Although you appear to have the correct credentials, the `octocat` organization has an IP allow list enabled",
         Cause.ADDRESS),
        ("Resource protected by organization SAML enforcement.", Cause.SAML),
        ("This installation has been suspended", Cause.SUSPENDED),
        ("Resource not accessible by integration", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_cause_of_a_sentence(sentence: str, cause: Cause | None) -> None:
    assert cause_of(sentence) == cause_of(sentence.upper()) == cause


@pytest.mark.parametrize("sentence", ["", " ", "Forbidden", "Not Found.", "Resource not accessible by integration"])
def test_a_sentence_that_says_no_more_than_the_status(sentence: str) -> None:
    assert is_generic(sentence)


@pytest.mark.parametrize("sentence", ["Resource protected by organization SAML enforcement.", "Not found: octocat"])
def test_a_sentence_that_says_why(sentence: str) -> None:
    assert not is_generic(sentence)
