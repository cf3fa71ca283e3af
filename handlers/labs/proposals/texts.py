"""Every sentence about proposals of labs: the issue form, and the answers to `@ci lab accept`. Pure."""

from __future__ import annotations

SUMMARY = "On an issue that proposes a lab: show the lines of app.yaml that accept it."

# The issue form
FORM_NAME = "Propose a lab"
FORM_DESCRIPTION = "You have devices and want to test this project on them."
FORM_TITLE = "[lab] "
INTRODUCTION = (
    "Thank you for testing this project on your devices. Results of labs are advisory and never block a merge. "
    "A maintainer answers here with what comes next."
)
LAB, TARGET, DEVICE, CONTACTS = "Lab", "Target", "Device", "Contacts"
TIER, ISOLATION = "Which commits you test", "Isolation"
TIERS = ("nightly commits only", "pull requests on request", "every push to a pull request")
"""The options of the form for tier 3, 2 and 1: written to it, and read from the issues that were opened with it."""
LAB_HELP = "The lab's name: letters, digits, `.`, `_` and `-`."
TARGET_HELP = "A short name of what you test on. Check runs are named `hardware/LAB/TARGET`."
DEVICE_HELP = "Which device it is, how many there are, and what they run."
CONTACTS_HELP = "Whom people ask if the lab fails, separated by commas: logins, teams or addresses."
TIER_HELP = "Every lab begins with nightly commits. The other two run code of pull requests on your devices."
ISOLATION_HELP = (
    "How you protect the devices and your network from the code that they run. Required if you test pull requests."
)

# Answers
NOT_A_PROPOSAL = (
    "This issue doesn't have the fields of *Propose a lab*, so I can't write the lines of app.yaml. "
    "`nightjar lab propose` prints the issue form."
)
BAD_FIELD = "The field *{field}* is {value}. It must be {words}."
EMPTY = "empty"
LAB_WORDS = "a name of letters, digits, ., _ and -, as in example-lab"
NO_CONTACTS = "1 to {most} names or addresses separated by commas"
NO_ISOLATION = "The field *{field}* is empty. A lab that tests pull requests must say how it isolates their code."
ON_ISSUES = "Comment this on the issue that proposes the lab."
NOT_ALLOWED = "You need maintain access to accept a lab."
ACCEPTED = """\
Nothing is changed yet. To accept the lab {lab}, add these lines to app.yaml, and restart the bot:

{lines}

Then create its token on the server, and send the token to the lab in private:

{command}

With the token, the lab runs `nightjar-lab doctor --target {target}`, then its first tests: docs/labs.md."""

# The audit log
WHY_ACCEPTED = "the lines of app.yaml for {lab}"
WHY_NO_COMMAND = "the comment does not accept a lab"
WHY_REFUSED = "the answer says why"
