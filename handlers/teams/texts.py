"""Comments that mention the subscribers of a topic, and the reasons in the audit log."""

INVALID_LINES = (
    "I could not read this: {lines}. Write a line for each topic with its people: {example}. "
    "Put comments in parentheses."
)
EXAMPLE = "- hexagon: @octocat @hubot (phones)"
CC = "**Teams:** cc {names}, for {topics}."
AND = " and "

MENTIONED = "mentioned {names}"
ALL_MENTIONED = "all subscribers were mentioned before"
LIST_STORED = "stored the list of issue {issue}"
LIST_OUTDATED = "a newer list is already stored"
SUBSCRIBED = "new subscribers of {topics}"
TOPICS_LISTED = "issue {issue} lists {count} topics"
NO_SUBSCRIBERS = "its topics have no subscriber left to mention"
NO_ROLE = "the author does not have the triage role, so this text was not read"
ISSUE_AUTHOR_WITHOUT_ROLE = "the author of issue {issue} does not have the triage role, so its description was not read"
ISSUE_REFUSED = "GitHub refused to let the bot read issue {issue} ({status}), so {instead}"
LAST_LIST_COUNTS = "the stored list was used"
ONLY_APP_YAML = "only the topics of app.yaml were used"
