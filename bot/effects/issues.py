"""Issues that the bot opens when somebody has to act, and closes when the problem is solved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bot.core.events import Payload
from bot.effects import texts
from bot.effects.comments import delete_comment, marked_comments
from bot.engine.records import Record
from bot.github.access import ISSUES, WritePermissions
from bot.github.addresses import issue_on_github
from bot.github.errors import is_not_found
from bot.github.text.markdown import TEXT_LIMIT, plain, truncate
from bot.plan.effect import Applied, EffectContext

if TYPE_CHECKING:
    from bot.engine.records import Key, Records

OURS = "/repos/{+repo}/issues{?creator,state}"
NEWEST = "/repos/{+repo}/issues?state=open&sort=created&direction=desc&per_page=100"
ALL_ISSUES = "/repos/{+repo}/issues"
ONE_ISSUE = "/repos/{+repo}/issues/{number}"
COMMENTS = "/repos/{+repo}/issues/{number}/comments"
MARKER = "<!-- nightjar:issue:{key} -->"
NEWS_MARKER = "<!-- nightjar:news:{digest} -->"
SECTION_MARKER = "<!-- nightjar:section:{name} -->"
SECTION_LIMIT = 20_000
"""Characters of all sections of an issue; the newest ones stay."""

TITLE_LIMIT = 256
"""Characters of a title that GitHub accepts."""
BODY_LIMIT = TEXT_LIMIT - 500
"""Characters of a body; the rest is for its markers."""


@dataclass(frozen=True, slots=True)
class OpenIssue:
    """An issue that we opened and have not closed."""

    number: int


@dataclass(frozen=True, slots=True)
class IssueMoment:
    """The time of the newest news in an issue, in seconds since 1970."""

    as_of: float = 0.0


@dataclass(frozen=True, slots=True)
class NewsState:
    """Whether news was posted in a place; while not `done`, a post of it has begun."""

    done: bool = False


ISSUE = Record("issue", 1, OpenIssue, "the open issue for a key; removed when the bot closes it", days=None)
ISSUE_MOMENT = Record("issue-as-of", 1, IssueMoment, "the time of the newest news in the issue for a key", days=365)
NEWS_STATE = Record("news", 1, NewsState, "whether a message was posted in a place", days=365)


@dataclass(frozen=True, slots=True)
class EnsureIssue:
    """Open or update the one issue of a key if there is a `body`; close it if there is none, with the body `closing`.

    Without `closing`, a closed issue keeps its body.

    An issue that a person closes stays closed until the problem is solved and comes back, or until something new
    `begins`, which gets an issue of its own. `news` (Markdown) is posted once for its `news_key`: by opening the issue
    or as a comment, and never in an issue that a person closed. The effect sets the title only when it opens the issue;
    people may change it.

    `as_of` is the time of the content, in seconds since 1970. Older content never replaces newer content, for example
    when a failed effect is replayed. 0: there is no order.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    key: str
    title: str = ""
    body: str = ""
    news: str = ""
    news_key: str = ""
    begins: bool = False
    as_of: float = 0.0
    closing: str = ""

    @property
    def effect_key(self) -> str:
        """The key, and the key of the news."""
        return f"issue:{self.key}" + (f":{self.news_key}" if self.news_key else "")

    async def apply(self, context: EffectContext) -> Applied:
        """Find the open issue by its marker and our user ID; then open, change or close it if necessary."""
        news_record = NEWS_STATE.of(context.repository.id, "issue", self.news_key)
        if self.news_key and not context.writes.may_have_twins and await context.records.get(news_record) is not None:
            return Applied(texts.ALREADY_REPORTED, changed=False)
        moment_record = ISSUE_MOMENT.of(context.repository.id, self.key)
        newest_as_of = (await context.records.get(moment_record) or IssueMoment()).as_of
        if 0 < self.as_of < newest_as_of:
            return Applied(texts.ISSUE_NEWER.format(key=self.key), changed=False)
        # GitHub first, then our records: after a crash in between, the next try finds the issue by its marker.
        applied = await self._ensure(context)
        if self.as_of > newest_as_of:
            await context.records.put(moment_record, IssueMoment(self.as_of))
        if self.news_key:
            await context.records.put(news_record, NewsState(done=True))
        return applied

    async def _ensure(self, context: EffectContext) -> Applied:
        record = ISSUE.of(context.repository.id, self.key)
        stored = await context.records.get(record)
        recorded_number = stored.number if stored is not None else None
        if not self.body and recorded_number is None:
            return Applied(texts.NO_OPEN_ISSUE, changed=False)
        open_issue = await self._open_issue(context, recorded_number)
        if not self.body:
            return await self._close(context, open_issue, record)
        if open_issue is None and recorded_number is not None and not self.begins:
            return Applied(
                texts.ISSUE_LEFT_CLOSED.format(number=recorded_number),
                changed=False,
                page=issue_on_github(recorded_number),
            )
        if open_issue is None:
            title = truncate(plain(self.title), TITLE_LIMIT)
            data = {"title": title, "body": self._body_with(self._news_marker, self.body)}
            url_vars = {"repo": context.repository.full_name}
            created = Payload(await context.github.post(ALL_ISSUES, url_vars=url_vars, data=data), "issue")
            number = created.integer("number")
            await context.records.put(record, OpenIssue(number))
            return Applied(texts.ISSUE_OPENED, page=issue_on_github(number))
        number = open_issue.integer("number")
        await context.records.put(record, OpenIssue(number))
        body = self._body_with(_news_marker_in(open_issue.text("body")), self.body)
        body = _with_sections(body, _sections_in(open_issue.text("body")))
        changed = open_issue.text("body") != body
        if changed:
            await self._change(context, number, {"body": body})
        commented = await self._comment(context, open_issue)
        return Applied(
            (texts.ISSUE_UPDATED if changed or commented else texts.ISSUE_SAME).format(number=number),
            changed or commented,
            page=issue_on_github(number),
        )

    async def _close(self, context: EffectContext, issue: Payload | None, record: Key[OpenIssue]) -> Applied:
        if issue is not None:
            number = issue.integer("number")
            await self._comment(context, issue)
            closed = {"state": "closed", "state_reason": "completed"}
            if self.closing:
                body = self._body_with(_news_marker_in(issue.text("body")), self.closing)
                closed["body"] = _with_sections(body, _sections_in(issue.text("body")))
            await self._change(context, number, closed)
        # Last: while the number is recorded, another try finds the issue and closes it.
        await context.records.remove(record)
        return (
            Applied(texts.ISSUE_CLOSED.format(number=number), page=issue_on_github(number))
            if issue is not None
            else Applied(texts.NO_OPEN_ISSUE, changed=False)
        )

    async def _open_issue(self, context: EffectContext, recorded_number: int | None) -> Payload | None:
        """Return the open issue of the key; close its twins, which exist if a write took effect late.

        The list may lack issues that Apps have opened, so the recorded number decides. Without one, the newest issues
        are searched.
        """
        url_vars = {"repo": context.repository.full_name, "creator": context.me.login, "state": "open"}
        own_issues = self._own_issues(context, [item async for item in context.github.getiter(OURS, url_vars=url_vars)])
        if recorded_number is not None and recorded_number not in (issue.integer("number") for issue in own_issues):
            own_issues += await self._recorded(context, recorded_number)
        elif not own_issues:
            own_issues = self._own_issues(context, await context.github.getitem(NEWEST, url_vars=url_vars))
        # The oldest stays, so that every try chooses the same one.
        own_issues.sort(key=lambda issue: issue.integer("number"))
        for twin in own_issues[1:]:
            await self._change(context, twin.integer("number"), {"state": "closed", "state_reason": "not_planned"})
        return own_issues[0] if own_issues else None

    def _own_issues(self, context: EffectContext, listed: Iterable[Any]) -> list[Payload]:
        issues = [Payload(item, "issue") for item in listed]
        return [issue for issue in issues if _is_ours(issue, context) and issue.text("body").startswith(self._marker)]

    async def _recorded(self, context: EffectContext, number: int) -> list[Payload]:
        """Return the issue of a recorded number if it is open; an empty list if it was deleted."""
        url_vars = {"repo": context.repository.full_name, "number": str(number)}
        try:
            issue = Payload(await context.github.getitem(ONE_ISSUE, url_vars=url_vars), "issue")
        except Exception as error:
            if is_not_found(error):
                return []
            raise
        return [issue] if _is_ours(issue, context) and issue.text("state") == "open" else []

    async def _comment(self, context: EffectContext, issue: Payload) -> bool:
        """Post the news unless the issue was opened with it or a comment of ours has it; return whether it was sent."""
        marker = self._news_marker
        if not self.news or _news_marker_in(issue.text("body")) == marker:
            return False
        number = issue.integer("number")
        posted = await marked_comments(context, number, marker)
        for twin in posted[1:]:
            await delete_comment(context, twin.id)
        if posted:
            return False
        url_vars = {"repo": context.repository.full_name, "number": str(number)}
        await context.github.post(COMMENTS, url_vars=url_vars, data={"body": f"{marker}\n{self.news}"})
        return True

    async def _change(self, context: EffectContext, number: int, change: dict[str, Any]) -> None:
        url_vars = {"repo": context.repository.full_name, "number": str(number)}
        await context.github.patch(ONE_ISSUE, url_vars=url_vars, data=change)

    @property
    def _marker(self) -> str:
        return MARKER.format(key=self.key.replace(">", "&gt;"))  # a ">", as in a branch name, would end the comment

    @property
    def _news_marker(self) -> str:
        digest = hashlib.sha256(self.news_key.encode()).hexdigest()[:24]
        return NEWS_MARKER.format(digest=digest) if self.news_key else ""

    def _body_with(self, news_marker: str, body: str) -> str:
        """Return a body with its markers, among them the marker of the news with which the issue was opened."""
        return "\n".join(filter(None, [self._marker, news_marker, body]))


@dataclass(frozen=True, slots=True)
class EnsureIssueSection:
    """Write the section `name` at the end of the open issue of a key (`EnsureIssue`), which keeps it until it closes.

    `text` is Markdown. Nothing is written if the issue is not open. Two effects that edit an issue in the same moment
    may undo each other's edit; the next one writes both.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    key: str
    name: str
    text: str

    @property
    def effect_key(self) -> str:
        """The issue's key, and the section's name."""
        return f"issue-section:{self.key}:{self.name}"

    async def apply(self, context: EffectContext) -> Applied:
        """Edit the issue unless its section is the same."""
        stored = await context.records.get(ISSUE.of(context.repository.id, self.key))
        if stored is None:
            return Applied(texts.NO_ISSUE_FOR_SECTION, changed=False)
        url_vars, page = {"repo": context.repository.full_name, "number": str(stored.number)}, stored.number
        try:
            issue = Payload(await context.github.getitem(ONE_ISSUE, url_vars=url_vars), "issue")
        except Exception as error:
            if is_not_found(error):
                return Applied(texts.NO_ISSUE_FOR_SECTION, changed=False)
            raise
        if not _is_ours(issue, context) or issue.text("state") != "open":
            return Applied(texts.NO_ISSUE_FOR_SECTION, changed=False)
        old_body = issue.text("body")
        sections = _sections_in(old_body)
        sections[self.name] = self.text
        content, _, _ = old_body.partition(_SECTION_START)
        body = _with_sections(content, sections)
        if body == old_body:
            return Applied(texts.ISSUE_SAME.format(number=page), changed=False, page=issue_on_github(page))
        await context.github.patch(ONE_ISSUE, url_vars=url_vars, data={"body": body})
        return Applied(texts.ISSUE_UPDATED.format(number=page), page=issue_on_github(page))


_SECTION_START, _, _SECTION_END = f"\n\n{SECTION_MARKER}".partition("{name}")
# No text from outside begins a line, so none can be a marker.


def _sections_in(body: str) -> dict[str, str]:
    """Return the sections at the end of an issue's body, by name."""
    _, *parts = body.split(_SECTION_START)
    named = (part.partition(_SECTION_END) for part in parts)
    return {name: text.strip() for name, _, text in named}


def _with_sections(body: str, sections: dict[str, str]) -> str:
    """Return a body with sections at its end; the oldest ones are left out if they are too long."""
    left, parts = min(SECTION_LIMIT, TEXT_LIMIT - len(body)), list[str]()
    for name, text in reversed(sections.items()):
        part = f"{SECTION_MARKER.format(name=name)}\n{text}"
        left -= len(part) + 2
        if left < 0:
            break
        parts.append(part)
    return "\n\n".join([body, *reversed(parts)])


def issue_key_in(body: str) -> str:
    """Return the key that an issue's marker names, empty if it has none. Only the record of the key proves it."""
    first, _, _ = body.partition("\n")
    start, _, end = MARKER.partition("{key}")
    is_marker = first.startswith(start) and first.rstrip().endswith(end)
    return first.rstrip().removeprefix(start).removesuffix(end).replace("&gt;", ">") if is_marker else ""


async def is_posted(records: Records, repository_id: int, news_key: str) -> bool:
    """Return whether the news of a key was posted to its issue; True without a key."""
    return not news_key or await records.get(NEWS_STATE.of(repository_id, "issue", news_key)) is not None


def _is_ours(issue: Payload, context: EffectContext) -> bool:
    return issue.has("user", "id") and issue.integer("user", "id") == context.me.user_id


def _news_marker_in(body: str) -> str:
    """Return the marker of the news with which an issue was opened, empty if its body has none."""
    marker_start, _, _ = NEWS_MARKER.partition("{")
    second_line = body.splitlines()[1:2]
    return next((line for line in second_line if line.startswith(marker_start)), "")
