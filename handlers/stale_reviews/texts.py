"""The reminder on a pull request without activity, and the reasons in the audit log."""

REMINDER = "There has been no activity for {waited}. {names}: please review this, or say what is missing."
TO_AUTHOR = (
    " {author}: if you are still working on it, please [convert it to a draft]({drafts}); drafts get no reminders."
)
REMINDED_PEOPLE = "reminded the reviewers of #{number}"
ALREADY_REMINDED = "the reviewers of #{number} were already reminded"
NO_REVIEW_PENDING = "no review of #{number} is pending"
RECENT_ACTIVITY = "#{number} has had activity since"
NONE_STALE = "nobody needs a reminder; open pull requests: {count}"
STALE = "{stale} of {count} open pull requests are stale; reminding on {reminded} of them now"
