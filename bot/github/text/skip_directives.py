"""Directives in a commit message that make a CI skip the commit. Our merge commits must not contain them.

A pull request's title and text go into its merge commit. With `[skip ci]` in them, no CI would test or deploy the base
branch. They are removed from code too, because no CI parses Markdown. Sources:
https://docs.github.com/en/actions/how-tos/manage-workflow-runs/skip-workflow-runs (GitHub Actions; `skip-checks:`),
https://docs.gitlab.com/ci/pipelines/#skip-a-pipeline, https://circleci.com/docs/guides/orchestrate/skip-build/,
https://docs.travis-ci.com/user/customizing-the-build/#skipping-a-build (`[skip KEYWORD]`),
https://learn.microsoft.com/en-us/azure/devops/pipelines/repos/azure-repos-git#skipping-ci-for-individual-pushes
(`***NO_CI***`), https://plugins.jenkins.io/github-scm-trait-commit-skip/,
https://developers.cloudflare.com/pages/configuration/branch-build-controls/ (`[CF-Pages-Skip]`).
"""

from __future__ import annotations

from bot.core.patterns import SPACE, Pattern, PatternMatch

_CI = (
    "ci|cd|cicd|ci/cd|actions?|workflows?|checks?|builds?|jenkins|travis|travis ci|circleci|circle ci|appveyor|azp|"
    "azurepipelines|azure-pipelines|buildkite|drone|cirrus|semaphore|netlify|vercel|render|railway|rtd"
)
_GAP = rf"[{SPACE}_-]{{0,3}}"
_DIRECTIVE = Pattern(
    rf"[ \t]{{0,3}}(?:\[{_GAP}(?:(?:skip|no){_GAP}(?:{_CI})|(?:{_CI}){_GAP}skip|cf[_-]pages[_-]skip){_GAP}\]"
    rf"|\*{{3}}{_GAP}no_ci{_GAP}\*{{3}})",
    ignore_case=True,
)
_TRAILER = Pattern(
    rf"^[{SPACE}]{{0,10}}(?:skip|request)[_-]checks[{SPACE}]{{0,10}}:.*$", ignore_case=True, by_line=True
)
_MARKS = str.maketrans("", "", "[]*")


def without_directives(text: str) -> str:
    """Return a text without directives that make a CI skip the commit.

    Removing one may create another (`[skip [no ci]ci]`). The second pass removes only the brackets, which cannot create
    a new one, so two passes are enough at any depth of nesting.
    """
    if not (_DIRECTIVE.search(text) or _TRAILER.search(text)):
        return text
    stripped = _TRAILER.sub("", _DIRECTIVE.sub("", text))
    return _DIRECTIVE.sub(_bare, stripped)


def skips_ci(text: str) -> bool:
    """Return whether the message of a commit makes a CI skip it."""
    return without_directives(text) != text


def _bare(directive: PatternMatch) -> str:
    return directive[0].translate(_MARKS)
