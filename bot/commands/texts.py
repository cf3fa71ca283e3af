"""What people read about commands. `bot.commands.answers` puts the sentences together."""

from __future__ import annotations

NOTHING_ASKED = "You mentioned me without a command."
UNKNOWN_COMMAND = "I don't know this command."
TAKES_NO_ARGUMENTS = "This command takes no arguments."
UNKNOWN_ARGUMENT = "This command doesn't take this argument."
CHOICE_STANDS_ALONE = "This argument can't be combined with names or other words."
NAME_OR_TYPO = "This could be a name or a typo. Put quotes around it if it is a name."
NOT_A_NAME = "Links, images and code inside a word can't be part of a name."
BAD_NAME = (
    "A name has 1 to 255 characters, with at least one letter, digit or `*`. Put quotes around a name with spaces."
)
TOO_MANY_NAMES = "A command takes at most 20 names."
QUOTE_OPEN = "A quotation mark has no closing mark."
ONE_COMMAND_A_LINE = "Put each command on its own line: this line mentions me twice."
IN_EARLIER_MAIL = (
    "This line is below the header of an earlier mail, so it may be someone else's. Write commands above that, or "
    "in a comment on GitHub."
)
TOO_MANY_COMMANDS = "A comment can have at most 20 commands, so this line and all after it were ignored."

DID_YOU_MEAN = "Did you mean {command}?"
LISTED = "{command} lists all commands."
NEED_ACCESS = "You need {access} for this. Ask a maintainer to comment {command}."
ONLY_THESE = "Only {who} can do this. Ask one of them to comment {command}."
NOBODY_MAY = "Nobody may use this command here: `app.yaml` allows no role."
NOT_OWN_WORDS = "You edited this into a comment by {author}, so I ignored it. Post {command} in a comment of your own."
SWITCHED_OFF = "This command is off for {repository}. A maintainer can turn it on: add {key} to {files}."
"""`files` are those that accept the key: `bot.config.shared.files_for`."""
OVERRIDDEN = "Ignored: a later line of this comment overrides it."
PERSON_OVER = (
    "I did nothing: you reached the limit of {limit} commands an hour in this repository. Try again in an hour."
)
PULL_OVER = (
    "I did nothing: this pull request reached the limit of {limit} commands an hour. Try again in an hour, or ask "
    "someone with write access."
)

NAME_ONE_COMMIT = "Nothing was approved: name one commit by 7 to 40 digits of its SHA."
NOT_THE_HEAD = "Nothing was approved: you named {named}, but the head is {head}. Review {head}, then comment {command}."
HEAD_MOVED_SINCE = (
    "Nothing was approved: the head moved to {head} after your comment. Review {head}, then comment {command}."
)
UNKNOWN_HEAD = (
    "Nothing was approved: I don't know which commit was the head when you commented. Review {head}, then comment "
    "{command}."
)

ABOUT = "About [{what}]({url}):"
"""The first line of an answer; `what` is one of the three below."""
DESCRIPTION, REVIEW, COMMENT = "the description", "your review", "your comment"
PAGE = "[Everything I did on this pull request, and why]({url})"
DONE_TEXT = "done."
CUT = "\n\n*(The rest of this answer is too long for a comment.)*"

HELP_INTRODUCTION = "Put each command on its own line, in a comment, a review or the description of a pull request."
ALL_MENTIONS = "You can use any of these names: {names}."
EXAMPLE = "Example: {example}."
HELP_HEADER = ("command", "what it does", "who can use it", "synonyms")
HELP_SUMMARY = "List the commands that are on in this repository, and who can use each."

# Reasons and outcomes in the audit log
HEAD_NOT_VISIBLE = "GitHub's API does not show the head of the latest webhook yet"
WHY_COMMANDS = "commands of {by}: {count}"
WHY_ONLY_TYPOS = "the comment has no valid command, and its author may not run any"
WHY_NO_COMMAND = "planning failed, and the comment has no valid command"
WHY_NOT_PLANNED = "planning the commands failed"
WHY_ALL_APPLIED, WHY_SOME_FAILED = "all effects were applied", "{failed} of {count} effects failed"
WHY_NOT_DONE = "commands that were not carried out: {undone} of {count}; the answer says why"
WHY_OVER_LIMIT = "over the limit of commands an hour"
WHY_SILENT = "the bot already answered this in the last hour"
WHY_ONLY_REACTION = "an earlier answer on this pull request explained who may run commands"
COUNTED = "counted commands: {commands}"
COMMAND_TWICE = "the command '{phrasing}' of '{name}' already means '{taken}'"
COMMAND_EMPTY = "the command '{phrasing}' of '{name}' is empty"
