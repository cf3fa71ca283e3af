from urllib.parse import parse_qsl, urlsplit

from bot.app.features import full_router
from bot.app.prefilter import INSTALLATION_EVENTS
from bot.app.registration import EVENTS, PERMISSIONS, registration_text, registration_url


def test_the_app_subscribes_to_exactly_the_events_that_handlers_accept() -> None:
    wanted = {event for handler in full_router().handlers for event, _ in handler.wants}
    # Our own events have a dot in their names and do not come from GitHub. GitHub sends those of installations to every
    # App.
    noted = {event for event in INSTALLATION_EVENTS if not event.startswith("installation")}
    assert {event for event in wanted if "." not in event} | noted == set(EVENTS)


def test_the_link_fills_in_every_permission_and_event() -> None:
    address = urlsplit(registration_url())
    given = parse_qsl(address.query)
    assert f"{address.scheme}://{address.netloc}{address.path}" == "https://github.com/settings/apps/new"
    assert [value for name, value in given if name == "events[]"] == list(EVENTS)
    assert "workflows" not in dict(given), "workflow changes are opt-in"
    # GitHub adds this one to any other by itself.
    assert {"metadata": "read", **{n: v for n, v in given if v in ("read", "write")}} == PERMISSIONS


def test_the_guide_names_every_permission_and_event() -> None:
    text = registration_text()
    checks = "check runs of hardware labs, of `.github/nightjar.yaml` and of titles; find jobs by name"
    assert f"| Checks | write | {checks} |" in text
    assert "| Workflows | write | merge, and move branches, " in text
    assert "Events: *Check run*, *Check suite*, *Issue comment*, *Issues*, *Merge group*, *Pull request*," in text
    assert registration_url() in text
