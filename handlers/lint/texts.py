"""The texts of the check run about a pull request's title and description."""

WELL, ONE_FAULT, FAULTS = "No problems", "1 problem", "{count} problems"
WARNED = "; the text mentions people"
ALL_IS_WELL = "The title and the description are fine."
ADVICE = "This is advice and never blocks a merge. It is checked again when the title or the description changes."
NO_TITLE = "- **The title is empty.** Summarize the change in a few words."
PERIOD = "- **The title ends in a period.** Remove it."
UNKNOWN_TAGS = "- **The title has unknown tags: {tags}.** Known tags: {known}."
NO_TEXT = "- **The description is empty.** Say what changes and why. Text between `<!--` and `-->` doesn't count."
PEOPLE = (
    "- *Warning:* GitHub notifies {names} about this pull request, and again about each commit whose message "
    "mentions them. To ask for a review, write `cc` before a name. Put names that are code between backticks."
)
MOVED = "a newer push has its own check run"
NO_TITLE_IN_GROUP = "A merge group has no title"
CHECKED_ON_PULLS = "Titles and descriptions are checked on the pull requests."
