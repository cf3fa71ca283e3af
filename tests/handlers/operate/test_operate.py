"""What operators can see and do, and nobody else can."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection
from urllib.parse import quote

import pytest

from bot.app.doctor.findings import Check, Finding
from bot.config.newest import NEWEST_CONFIG
from bot.core.errors import TryAgain
from bot.core.events import Person
from bot.web.sign_in.operators import Operators
from bot.web.sign_in.viewers import Viewers
from handlers.operate.records import replays_asked
from tests.conversations.town import BOT
from tests.handlers.dashboard.hostile import ATTACK, PageMarkup
from tests.handlers.operate.places import OperatedTown, fail
from tests.visitor import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = ("/operate", "/operate/state", "/operate/log")


async def test_only_operators_see_the_pages_and_their_json(operated: OperatedTown, visitor: Visitor) -> None:
    paths = [path for page in (*PAGES, f"/operate/deliveries/{operated.failed}") for path in (page, f"/api/v1{page}")]
    assert {(await visitor.get(path)).status for path in paths} == {404}
    await visitor.sign_in("octocat")  # owning the repository does not make somebody an operator
    refused = [await visitor.get(path) for path in paths]
    assert {response.status for response in refused} == {403}
    assert "is listed below <code>operators</code> in app.<wbr>yaml" in refused[0].text
    assert ">Operate</a>" not in (await visitor.get("/")).text
    assert operated.failed not in "".join(response.text for response in refused[:2])
    await visitor.sign_in("hubot")
    for path in paths:
        response = await visitor.get(path)
        assert (path, response.status, response.headers["Cache-Control"]) == (path, 200, "private, no-store")
    assert '<a href="/operate">Operate</a>' in (await visitor.get("/")).text


async def test_the_first_page_begins_with_what_needs_a_person(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    watch, before = operated.town.bot.watch, len(operated.town.github.requests.records)
    findings = watch.findings
    watch.findings = {**findings, Check.HOOK: [Finding(Check.HOOK, f"the hook is {ATTACK}", "Correct it.")]}
    data = json.loads((await visitor.get("/api/v1/operate")).text)
    assert "".join(part["text"] for part in data["answer"]) == "Needs a person: 1 delivery failed; 1 check failing."
    failed, checks = data["attention"]
    assert ["blocked for a reason" in detail for detail in failed["details"]] == [True]
    assert checks["details"] == [f"the hook is {ATTACK}. Correct it."]
    state = json.loads((await visitor.get("/api/v1/operate/state")).text)
    assert {"check": "hook", "text": f"the hook is {ATTACK}", "remedy": "Correct it."} in state["checks"]
    assert {(quota["account"], *quota["repositories"]) for quota in state["quotas"]} >= {
        ("octocat", "octocat/compiler")
    }
    for page in ("/operate", "/operate/state"):
        assert PageMarkup((await visitor.get(page)).text, f"{operated.town.github.url}/octocat/compiler/").faults == []
    watch.findings = findings
    # The pages show the last round of checks: they ask GitHub nothing but who the visitor is.
    later = operated.town.github.requests.records[before:]
    assert {record.token for record in later} <= {"person"}


async def test_operators_can_run_all_checks_now(
    operated: OperatedTown, visitor: Visitor, second_visitor: Visitor
) -> None:
    await second_visitor.sign_in("octocat")
    assert (await second_visitor.post("/operate/checks", {"token": "x"})).status == 403
    await visitor.sign_in("hubot")
    watch = operated.town.bot.watch
    watch.findings = {Check.HOOK: [Finding(Check.HOOK, "the hook is wrong", "Correct it.")]}
    before = json.loads((await visitor.get("/api/v1/operate/state")).text)
    assert (await visitor.post("/operate/checks", {"token": "forged"})).status == 403
    pressed = await visitor.post("/operate/checks", {"token": (await visitor.get("/operate/state")).form_token})
    assert (pressed.status, pressed.location) == (303, "/operate/state#checks")
    state = json.loads((await visitor.get("/api/v1/operate/state")).text)
    assert state["checked_at"] > before["checked_at"]
    assert "the hook is wrong" not in [check["text"] for check in state["checks"]]
    assert "✓ passed</span>" in (await visitor.get("/operate/state")).text


async def test_an_empty_log_says_whether_filters_hide_lines(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    filtered = await visitor.get("/operate/log?q=no+line+says+this")
    assert "No line matches these filters." in filtered.text


async def test_a_delivery_of_a_pull_request_links_its_story(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    assert 'href="/r/octocat/compiler/pulls/1"' in (await visitor.get("/operate")).text


async def test_the_story_links_its_deliveries_for_operators_alone(
    operated: OperatedTown, visitor: Visitor, second_visitor: Visitor
) -> None:
    link = f'href="/operate/deliveries/{operated.failed}"'
    await visitor.sign_in("hubot")
    await second_visitor.sign_in("octocat")
    operators, owners = [(await reader.get("/r/octocat/compiler/pulls/1")).text for reader in (visitor, second_visitor)]
    assert operated.failed not in owners  # the keys of the engine are for operators
    assert (link in operators, link in owners) == (True, False)


@pytest.mark.parametrize(
    ("listed", "operator"),
    [
        (["583231"], True),
        (["1", "@octocat"], True),
        (["@OctoCat"], True),
        (["@octo-org/operators"], True),
        (["@octo-org/others"], False),
        (["@hubot", "58323", "5832310"], False),
        ([], False),
    ],
)
async def test_operators_are_named_by_id_by_login_or_by_team(listed: list[str], operator: bool) -> None:
    async def members_of(organization: str, team: str) -> Collection[int]:
        return [583231] if (organization, team) == ("octo-org", "operators") else []

    person = Person(583231, "octocat", is_bot=False)
    operators = Operators(listed, Viewers(), members_of)
    # This also holds before anybody requests an operator's page.
    assert await operators.sees_link(person) is operator
    assert await operators.includes(person) is operator


async def test_pages_are_shown_without_the_link_while_github_is_down() -> None:
    async def members_of(_: str, __: str) -> Collection[int]:
        raise TryAgain("GitHub is unavailable")

    operators = Operators(["@octo-org/operators"], Viewers(), members_of)
    assert not await operators.sees_link(Person(583231, "octocat", is_bot=False))


async def test_deliveries_can_be_filtered_by_each_property(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")

    async def found(query: str) -> list[tuple[str, str]]:
        answer = json.loads((await visitor.get(f"/api/v1/operate?{query}")).text)
        return [(delivery["guid"], delivery["state"]) for delivery in answer["deliveries"]]

    failed = (operated.failed, "failed")
    assert failed in await found("state=failed")
    assert {state for _, state in await found("state=failed")} == {"failed"}
    assert failed in await found("event=issue_comment.created")
    assert await found("event=push.created") == []
    assert failed in await found("event=issue_comment&repo=OctoCat/compiler&pr=1")
    assert failed in await found("q=blocked+for+a+reason")
    assert await found(f"q={operated.failed}") == [failed]
    assert await found("pr=2") == []
    assert await found("repo=octocat/elsewhere&pr=1") == []
    assert {state for _, state in await found("all=true")} >= {"failed", "ignored"}
    assert "ignored" not in {state for _, state in await found("")}
    assert (await visitor.get("/operate?state=odd")).status == 400
    page = (await visitor.get("/operate?q=%3Cscript%3E")).text
    assert "<script>" not in page
    assert "No delivery matches" in page


async def test_reasons_are_readable_sentences(operated: OperatedTown, visitor: Visitor) -> None:
    """No delivery shows names of handlers instead of what they decided or did."""
    await visitor.sign_in("hubot")
    operated.town.repo.pulls[0].comment("hubot", "no command")
    operated.town.repo.push("main", by="octocat")
    await operated.town.quiet()
    listed = json.loads((await visitor.get("/api/v1/operate?all=true")).text)["deliveries"]
    reasons = [delivery["reason"] for delivery in listed]
    assert all(reasons)
    assert [reason for reason in reasons if reason.startswith("for ")] == []


async def test_deliveries_are_available_as_csv(operated: OperatedTown, visitor: Visitor) -> None:
    address = "/api/v1/operate?format=csv&state=failed"
    assert (await visitor.get(address)).status == 404
    await visitor.sign_in("hubot")
    await operated.town.quiet()
    table = await visitor.get(address)
    assert (table.headers["Content-Type"], table.headers["Cache-Control"]) == (
        "text/csv; charset=utf-8",
        "private, no-store",
    )
    listed = json.loads((await visitor.get("/api/v1/operate?state=failed")).text)["deliveries"]
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [(row["guid"], row["state"], row["number"]) for row in rows] == [
        (delivery["guid"], "failed", str(delivery["number"])) for delivery in listed
    ]
    assert "as CSV" in (await visitor.get("/operate")).text


async def test_the_page_of_a_delivery_shows_each_step(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    page_text = (await visitor.get(f"/operate/deliveries/{operated.failed}")).text
    assert "blocked for a reason" in page_text
    assert ">Replay</button>" in page_text
    assert (await visitor.get("/operate/deliveries/unknown")).status == 404


async def test_a_step_links_what_it_wrote(operated: OperatedTown, visitor: Visitor) -> None:
    pull = operated.town.repo.pulls[0]
    pull.comment("hubot", "@ci help")
    await operated.town.quiet()
    recent = await operated.town.bot.engine.journal.recent(10)
    guid = next(
        record.guid
        for record in recent
        if any(effect.kind == "Reply" for plan in record.plans for effect in plan.effects)
    )
    written = pull.comments_by(BOT)[-1]
    await visitor.sign_in("hubot")
    address = f"{operated.town.github.url}/{operated.town.repo.full_name}/pull/{pull.number}#issuecomment-{written.id}"
    steps = json.loads((await visitor.get(f"/api/v1/operate/deliveries/{guid}")).text)["steps"]
    assert [(step["url"], step["link"]) for step in steps if step["name"].startswith("Reply")] == [(address, "comment")]
    assert {step["url"] for step in steps if step["depth"] < 2} == {""}
    assert f'<a href="{address}">comment</a>' in (await visitor.get(f"/operate/deliveries/{guid}")).text


async def test_the_state_says_why_the_newest_app_yaml_is_not_in_use(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    newest = operated.town.bot.services.part(NEWEST_CONFIG)
    assert json.loads((await visitor.get("/api/v1/operate/state")).text)["config_problem"] == ""
    newest.problem = "app.yaml:2:3: repositories: slow_test is unknown"
    assert "slow_test is unknown" in (await visitor.get("/operate/state")).text
    newest.problem = ""


async def test_timers_link_their_deliveries(visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    state = json.loads((await visitor.get("/api/v1/operate/state")).text)
    assert [(timer["repository"], timer["name"]) for timer in state["timers"]] == [("octocat/compiler", "nightly")]
    assert [worker["silent"] for worker in state["workers"]] == [False]
    assert {quota["resource"] for quota in state["quotas"]} >= {"core"}
    assert state["problem"] == ""
    recent = json.loads((await visitor.get("/api/v1/operate?all=true")).text)["deliveries"]
    guids_with_slash = [record["guid"] for record in recent if "/" in record["guid"]]
    for guid in guids_with_slash[:1]:
        assert (await visitor.get(f"/operate/deliveries/{quote(guid, safe='')}")).status == 200


async def test_a_dry_run_writes_nothing(operated: OperatedTown, visitor: Visitor) -> None:
    await visitor.sign_in("hubot")
    path = f"/operate/deliveries/{operated.failed}"
    token = (await visitor.get(path)).form_token
    write_count = len(operated.town.github.requests.writes)
    response = await visitor.post(f"{path}/dry-run", {"token": token})
    assert response.status == 200
    assert '<th scope="row" data-label="Effect">Reply' in response.text
    assert ">Replay</button>" in response.text
    assert len(operated.town.github.requests.writes) == write_count
    assert "failed" in (await visitor.get(path)).text


async def test_only_operators_can_replay(operated: OperatedTown, visitor: Visitor, second_visitor: Visitor) -> None:
    path = f"/operate/deliveries/{operated.failed}/replay"
    assert (await visitor.post(path, {})).status == 404
    await visitor.sign_in("octocat")
    await second_visitor.sign_in("hubot")
    own_token, operator_token = (await visitor.get("/")).form_token, (await second_visitor.get("/")).form_token
    for form in ({}, {"token": own_token}, {"token": operator_token}):
        for button in (path, path.replace("replay", "dry-run")):
            assert (await visitor.post(button, form)).status == 403
    # A page elsewhere cannot make the operator's browser do it.
    forged = [
        ({}, ""),
        ({"token": own_token}, ""),
        ({"token": operator_token}, "https://evil.example"),
        ({"token": operator_token}, None),
    ]
    for form, origin in forged:
        assert (await second_visitor.post(path, form, origin)).status == 403
    assert (await second_visitor.get(path)).status == 405
    assert await replays_asked(operated.town.bot.engine.records, operated.failed) == ()
    record = await operated.town.bot.engine.journal.delivery(operated.failed)
    assert record is not None
    assert record.state == "failed"


async def test_a_replay_runs_and_says_who_requested_it(operated: OperatedTown, visitor: Visitor) -> None:
    town, guid = operated.town, await fail(operated.town)
    await visitor.sign_in("hubot")
    path = f"/operate/deliveries/{guid}"
    token = (await visitor.get(path)).form_token
    pressed = await visitor.post(f"{path}/replay", {"token": token})
    assert (pressed.status, pressed.location) == (303, path)
    await town.quiet()
    hubot = town.github.user("hubot")
    page_text = (await visitor.get(path)).text
    assert f"requested by @hubot (ID {hubot.id})" in page_text
    assert "failed" not in {step["state"] for step in json.loads((await visitor.get(f"/api/v1{path}")).text)["steps"]}
    pull = town.repo.pulls[0]
    assert any("@ci help" in answer or "commands" in answer.lower() for answer in town.answers(pull))
    (replay,) = await replays_asked(town.bot.engine.records, guid)
    assert (replay.person, replay.login) == (hubot.id, "hubot")
    assert (await visitor.post("/operate/deliveries/unknown/replay", {"token": token})).status == 404


async def test_text_from_outside_is_escaped_and_links_nowhere(operated: OperatedTown, visitor: Visitor) -> None:
    failed = await fail(operated.town, ATTACK)
    await visitor.sign_in("hubot")
    pages = {
        path: PageMarkup((await visitor.get(path)).text, f"{operated.town.github.url}/octocat/compiler/pull/1#")
        for path in (*PAGES, f"/operate?q={quote(ATTACK)}", f"/operate/deliveries/{failed}")
    }
    assert {path: page.faults for path, page in pages.items() if page.faults} == {}
    assert "<script>alert(1)</script>" in "".join(pages[f"/operate/deliveries/{failed}"].text)
