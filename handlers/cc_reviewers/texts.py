"""What the sticky comment says about reviewers who could not be asked, and the reasons in the audit log."""

from __future__ import annotations

REFUSED = (
    "**Reviewers:** I couldn't request a review from {names}: only people and teams with access to this repository "
    "can review. Check the names and edit the description; then I'll try again."
)
HIDDEN = (
    "**Reviewers:** I couldn't request a review from {names}: the App needs *Members: read* to see teams. The "
    "App's owner grants it in the App's settings; then an owner of the organization accepts it. I'll try again when "
    "the description is edited."
)
FAILED = "**Reviewers:** I couldn't request reviews. {why}"

NOBODY_ASKED = "there are no reviews to request"
SECTION_SAME = "the sticky comment is up to date"

NO_REVIEWER_FOUND = "we could not find the reviewers to ask"
SHOWS_REFUSALS = "the sticky comment shows who could not be asked"
NAMED = "cc in the text of #{number}"
RECOVERED = "the earlier problem is solved"
NOBODY_NAMED = "the text names nobody after `cc`"
ALL_ASKED = "everybody whom the text names has been asked already"
