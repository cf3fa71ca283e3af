"""Comments that mention the subscribers of a topic, and the reasons in the audit log."""

INVALID_LINES = (
    "I could not read this: {lines}. Write a line for each topic with its people: {example}. "
    "Put comments in parentheses."
)
EXAMPLE = "- hexagon: @octocat @hubot (phones)"
CC = "**Teams:** cc {names}, for {topics}."
AND = " and "

MENTIONED = "mentioned {names}"
ALL_MENTIONED = "everybody was mentioned before"
LIST_STORED = "stored the list of issue {issue}"
LIST_OUTDATED = "a newer list is stored already"
SUBSCRIBED = "they subscribe to {topics}"
TOPICS_LISTED = "issue {issue} lists {count} topics"
NO_SUBSCRIBERS = "it has no topic with subscribers who were not mentioned yet"
NO_ROLE = "the writer has no triage role, so this text does not count"
ISSUE_AUTHOR_WITHOUT_ROLE = "the author of issue {issue} has no triage role, so its text does not count"
ISSUE_REFUSED = "GitHub refuses to show issue {issue} ({status}), so {instead}"
LAST_LIST_COUNTS = "its last list counts"
ONLY_APP_YAML = "only the topics of app.yaml count"
