"""Fill in GitHub's form for a new issue about a flaky or failing test; a person reviews and submits it. No I/O.

https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/creating-an-issue#creating-an-issue-from-a-url-query
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.core.page_paths import query
from bot.github.text.markdown import code, fenced, plain, truncate
from handlers.dashboard.shared import texts

LONGEST_ADDRESS = 6000
"""Characters of an address; GitHub refuses addresses of about 8,000 or more."""
BUDGETS = (1000, 400, 150, 60)
"""The most characters of each text from outside, tried in turn until the address is short enough.

A character may take nine or more in an address, where its UTF-8 bytes are written as `%XX`.
"""
MOST_PROOFS = 5
SHORT = 10


# A page has a draft for each target, with the same test and suite.
_plain, _code = lru_cache(64)(plain), lru_cache(64)(code)


@dataclass(frozen=True, slots=True)
class IssueDraft:
    """The contents of an issue about a test on a target; an unknown field is empty.

    `page` is the address of the repository on GitHub, `history` that of the test's page.
    """

    page: str
    test: str
    suite: str
    target: str
    flaky: str = ""
    proofs: Sequence[str] = ()
    since: str = ""
    good: str = ""
    message: str = ""
    reproduce: str = ""
    history: str = ""

    def address(self) -> str:
        """Return the address of GitHub's form, filled in; that of the empty form if it cannot be short enough."""
        for most in BUDGETS:
            url = f"{self.page}/issues/new{query({'title': self._title(most), 'body': self._body(most)})}"
            if len(url) <= LONGEST_ADDRESS:
                return url
        return f"{self.page}/issues/new"

    def _title(self, most: int) -> str:
        words = texts.ISSUE_FLAKY if self.flaky else texts.ISSUE_FAILING
        return words.format(test=_plain(truncate(self.test, min(most, 200))))

    def _body(self, most: int) -> str:
        return "\n\n".join(self._parts(most))

    def _parts(self, most: int) -> Iterator[str]:
        quoted = {name: _code(truncate(getattr(self, name), most)) for name in ("test", "suite", "target")}
        yield texts.ISSUE_WHERE.format(**quoted)
        if self.flaky:
            proofs = ", ".join(self._commit(sha) for sha in self.proofs[:MOST_PROOFS])
            yield texts.ISSUE_IS_FLAKY.format(words=self.flaky) + (
                texts.ISSUE_PROOF.format(proofs=proofs) if proofs else ""
            )
        if self.since:
            yield texts.ISSUE_SINCE.format(since=self._commit(self.since)) + (
                texts.ISSUE_GOOD.format(
                    good=self._commit(self.good), url=f"{self.page}/compare/{self.good}...{self.since}"
                )
                if self.good
                else ""
            )
        if self.message:
            yield fenced(truncate(self.message, most))
        if self.reproduce:
            yield f"{texts.ISSUE_REPRODUCE}\n\n{fenced(truncate(self.reproduce, most))}"
        if self.history and len(self.history) <= most:
            yield texts.ISSUE_HISTORY.format(url=self.history)

    def _commit(self, sha: str) -> str:
        return f"[`{sha[:SHORT]}`]({self.page}/commit/{sha})"
