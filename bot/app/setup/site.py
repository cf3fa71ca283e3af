"""The pages of a process without credentials: choose, let GitHub create the App, install it, write app.yaml."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from cachetools import TTLCache
from gidgethub import GitHubException

from bot.app.lab_lines import with_lab
from bot.app.load import parse_config
from bot.app.registration import EVENTS, PERMISSIONS
from bot.app.setup.addresses import (
    SIGN_IN_CALLBACK,
    WEBHOOK,
    GitHubSite,
    github_site,
    organization_name,
    public_address,
)
from bot.app.setup.conversion import CODE, CodeRefused, ConversionAway, CreatedApp, OddConversion, convert
from bot.app.setup.gate import FORM_FIELD, SETUP
from bot.app.setup.installed import InstalledApp, config_text, read_installed
from bot.app.setup.shown import (
    CHECKS,
    CREATED,
    INSTALL,
    LABS,
    NEVER_STORED,
    PROBE,
    START,
    SetupFiles,
    form_to,
    see_other,
    show,
    shown,
)
from bot.app.setup.texts import (
    APP_DESCRIPTION,
    APP_NAME,
    APP_NAME_FOR,
    BAD_FORM,
    CANNOT_WRITE,
    CODE_REFUSED,
    CONFIG_EXISTS,
    CONFIG_TOO_LARGE,
    ENV_EXISTS,
    GITHUB_AWAY,
    INSTALLATIONS_UNKNOWN,
    INTERRUPTED,
    LAB_INCOMPLETE,
    NO_SUCH_REPOSITORY,
    NOT_BEGUN_HERE,
    NOT_SERVING_YET,
    ODD_CONVERSION,
    PROBE_FAILED,
    PROBE_OTHER,
    SECRETS_NOT_STORED,
)
from bot.config import ConfigError
from bot.config.environment import Settings
from bot.core.errors import SettingsError, TryAgain
from bot.core.urls import linkable
from bot.github.app import GitHubApp
from bot.web.problems import Problem

MOST_DRAFTS = 200
"""Drafts that one process remembers."""
DRAFT_SECONDS = 2 * 3600
"""Seconds for which a draft is stored: GitHub's code is valid for an hour, and before that the person takes a while."""


@dataclass(frozen=True, slots=True)
class SetupDraft:
    """What the person chose: which GitHub, whose App, and the bot's public address."""

    site: GitHubSite
    organization: str
    public_url: str


class SetupDrafts:
    """The drafts of one process, by state."""

    def __init__(self) -> None:
        self._drafts: TTLCache[str, SetupDraft] = TTLCache(MOST_DRAFTS, DRAFT_SECONDS)

    def begin(self, draft: SetupDraft) -> str:
        """Return the state of a draft, the same for the same draft."""
        known = next((state for state, one in self._drafts.items() if one == draft), None)
        state = known or secrets.token_urlsafe(24)
        self._drafts[state] = draft
        return state

    def find(self, state: str) -> SetupDraft | None:
        """Return the draft of a state, None if none was begun here."""
        found: SetupDraft | None = self._drafts.get(state)
        return found

    def end(self) -> None:
        """Forget all drafts: an App exists."""
        self._drafts.clear()


LONGEST_NAME = 34
"""Characters that GitHub allows."""


def app_manifest(organization: str, public_url: str, redirect_url: str) -> dict[str, Any]:
    """Return the manifest; GitHub sends the person to `redirect_url` with the code."""
    name = APP_NAME_FOR.format(organization=organization) if organization else APP_NAME
    return {
        "name": name[:LONGEST_NAME].rstrip("- "),
        "description": APP_DESCRIPTION,
        "url": public_url,
        "hook_attributes": {"url": public_url + WEBHOOK, "active": True},
        "redirect_url": redirect_url,
        "callback_urls": [public_url + SIGN_IN_CALLBACK],
        "public": False,
        "default_permissions": dict(PERMISSIONS),
        "default_events": list(EVENTS),
    }


ENTRIES = ("public_url", "owner", "github")
"""The fields of the form in which a person chooses."""
LONGEST_FIELD = 500
"""Characters of a field of the form; the rest is ignored."""
LARGEST_CONFIG = 64 * 1024
"""Bytes of the app.yaml in the form."""
RETRY_SECONDS = "60"
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=5)


async def _stop_nothing() -> None:
    """Do nothing: without a server there is nothing to stop."""


@dataclass
class SetupSite:
    """The set-up of one process. `ready` is set once credentials and app.yaml exist.

    `load_settings` reads the credentials again, and raises `SettingsError`; `settings` is None until there are any.
    `stop_listening` accepts no more connections, and leaves those that are open.
    """

    files: SetupFiles
    http: aiohttp.ClientSession
    load_settings: Callable[[], Settings]
    settings: Settings | None = None
    stop_listening: Callable[[], Awaitable[None]] = _stop_nothing
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _drafts: SetupDrafts = field(default_factory=SetupDrafts)
    _converting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _app: GitHubApp | None = None
    _name: str = field(default_factory=lambda: secrets.token_hex(16))

    def join(self, app: web.Application) -> None:
        """Add the routes."""
        app.router.add_get("/", self._home)
        app.router.add_get(SETUP, shown(self._begin))
        app.router.add_post(SETUP, shown(self._choose))
        app.router.add_get(CREATED, shown(self._created))
        app.router.add_get(INSTALL, shown(self._install))
        app.router.add_post(LABS, shown(self._labs))
        app.router.add_get(LABS, self._back_to_install)
        app.router.add_get(PROBE, self._probe)
        app.router.add_post(START, shown(self._start))
        app.router.add_get(CHECKS, self._home)
        app.router.add_post("/webhook", self._not_yet)

    async def _home(self, _: web.Request) -> web.StreamResponse:
        return see_other(SETUP)

    async def _not_yet(self, _: web.Request) -> web.StreamResponse:
        raise Problem(503, NOT_SERVING_YET, headers={"Retry-After": RETRY_SECONDS})

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        """Show the empty form: entries in the address may be those of another site."""
        if (entering := self.files.gate.enter(request)) is not None:
            return entering
        self.files.gate.check(request)
        return await self._show_choice(request, dict.fromkeys(ENTRIES, ""), None, {})

    async def _choose(self, request: web.Request) -> web.StreamResponse:
        """Show the form again, and the button once everything in it is right."""
        form = await self._read_form(request)
        entered = {name: str(form.get(name, ""))[:LONGEST_FIELD] for name in ENTRIES}
        return await self._show_choice(request, entered, *read_draft(entered))

    async def _show_choice(
        self, request: web.Request, entered: dict[str, str], draft: SetupDraft | None, errors: dict[str, str]
    ) -> web.StreamResponse:
        if self.settings is not None:
            return see_other(INSTALL)
        if self.files.env.exists:
            raise Problem(409, ENV_EXISTS.format(path=self.files.env.path))
        left = self.files.env.left_behind()
        context = {
            "entered": entered,
            "errors": errors,
            "draft": draft,
            "env": str(self.files.env.path),
            "interrupted": left is not None,
            "apps": next(filter(None, map(linkable, left or ())), ""),
            "port": self.files.gate.port,
            "setup_form": self.files.gate.form_token,
        }
        if draft is None:
            return await show(request, "setup.html", context, status=422 if errors else 200)
        manifest = app_manifest(draft.organization, draft.public_url, f"http://{request.host}{CREATED}")
        page = draft.site.new_app_page(draft.organization)
        context["unreachable"] = await self._reach(draft.public_url)
        context["action"] = f"{page}?{urlencode({'state': self._drafts.begin(draft)})}"
        context["manifest"] = json.dumps(manifest)
        context["wanted"] = manifest
        return await show(request, "setup.html", context, headers=form_to(draft.site.web))

    async def _created(self, request: web.Request) -> web.StreamResponse:
        """Exchange the code that the browser brings back from GitHub for the App's secrets, and store them."""
        self.files.gate.check(request)
        async with self._converting:
            if self.settings is not None:
                return see_other(INSTALL)
            draft, code = self._drafts.find(request.query.get("state", "")), request.query.get("code", "")
            if draft is None or not CODE.fullmatch(code):
                raise Problem(400, NOT_BEGUN_HERE)
            apps = draft.site.apps_page(draft.organization)
            self._reserve(apps)
            created = await self._converted(draft.site, code, apps)
            self._store(created, draft.site, apps)
            self._drafts.end()
            self.settings = self._loaded()
        return see_other(INSTALL)

    def _reserve(self, apps: str) -> None:
        """Prove before the code is used up that the secrets can be stored."""
        path = self.files.env.path
        try:
            self.files.env.reserve(INTERRUPTED.format(apps=apps))
        except FileExistsError:
            raise Problem(409, ENV_EXISTS.format(path=path)) from None
        except OSError as error:
            raise Problem(500, CANNOT_WRITE.format(path=path, reason=_reason(error))) from None

    async def _converted(self, site: GitHubSite, code: str, apps: str) -> CreatedApp:
        try:
            return await convert(self.http, site, code)
        except ConversionAway as error:
            # Keep the draft: GitHub may have created the App although its answer, with the secrets, was lost.
            raise Problem(502, GITHUB_AWAY.format(reason=error, apps=apps)) from None
        except CodeRefused:
            self.files.env.discard()
            raise Problem(410, CODE_REFUSED.format(apps=apps)) from None
        except OddConversion as error:
            self.files.env.discard()
            raise Problem(502, ODD_CONVERSION.format(what=error, apps=apps)) from None

    def _store(self, created: CreatedApp, site: GitHubSite, apps: str) -> None:
        path = self.files.env.path
        try:
            self.files.env.write(created.environment(site))
        except OSError as error:
            raise Problem(500, SECRETS_NOT_STORED.format(path=path, reason=_reason(error), apps=apps)) from None

    def _loaded(self) -> Settings:
        try:
            return self.load_settings()
        except SettingsError as error:
            raise Problem(500, " ".join(error.problems)) from None

    async def _install(self, request: web.Request) -> web.StreamResponse:
        """Show where the App is installed, and the app.yaml for it."""
        self.files.gate.check(request)
        if self.settings is None:
            return see_other(SETUP)
        return await self._show_install(request, self.settings)

    async def _show_install(
        self, request: web.Request, settings: Settings, text: str | None = None, problems: tuple[str, ...] = ()
    ) -> web.StreamResponse:
        found, away = await self._read_installed(settings)
        exists = self.files.config.exists
        if text is None and found is not None and found.repositories:
            text = config_text(found.public_url, found.repositories, found.more)
        context = {
            "found": found,
            "away": away,
            "exists": exists,
            "text": text,
            "problems": problems,
            "config": str(self.files.config.path),
            "env": str(self.files.env.path),
            "wait": not exists and text is None,
            "setup_form": self.files.gate.form_token,
        }
        return await show(request, "setup_install.html", context, status=422 if problems else 200)

    async def _read_installed(self, settings: Settings) -> tuple[InstalledApp | None, str]:
        if self._app is None:
            key = settings.private_key.get_secret_value()
            self._app = GitHubApp(self.http, app_id=settings.app_id, private_key=key, api_url=settings.api_url)
        try:
            return await read_installed(self._app), ""
        except (TryAgain, GitHubException) as error:
            return None, INSTALLATIONS_UNKNOWN.format(reason=error)

    async def _back_to_install(self, _: web.Request) -> web.StreamResponse:
        return see_other(INSTALL)

    async def _labs(self, request: web.Request) -> web.StreamResponse:
        """Show the form for a lab; add the one that it names to the text of app.yaml."""
        form = await self._read_form(request)
        if self.settings is None:
            return see_other(SETUP)
        return await self._show_labs(request, self.settings, form, adds=bool(form.get("add")))

    async def _show_labs(
        self, request: web.Request, settings: Settings, form: Mapping[str, object], *, adds: bool
    ) -> web.StreamResponse:
        text = str(form.get("config", "")).replace("\r\n", "\n")
        if problems := self._faults_of(text):
            return await self._show_install(request, settings, text, problems)
        entered = {name: str(form.get(name, ""))[:LONGEST_FIELD].strip() for name in ("lab", "targets", "repository")}
        added = ""
        if adds:
            changed, problems = self._with_lab(text, entered)
            if not problems:
                text, added, entered = changed, entered["lab"], {**entered, "lab": "", "targets": ""}
        context = {
            "text": text,
            "entered": entered,
            "added": added,
            "problems": problems,
            "repositories": parse_config(text.encode(), str(self.files.config.path)).configured.named,
            "config": str(self.files.config.path),
            "setup_form": self.files.gate.form_token,
        }
        return await show(request, "setup_labs.html", context, status=422 if problems else 200)

    def _with_lab(self, text: str, entered: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
        """Return app.yaml with the lab that a person entered, or the faults of it."""
        targets = [target.strip() for target in entered["targets"].split(",") if target.strip()]
        if not entered["lab"] or not targets:
            return text, (LAB_INCOMPLETE,)
        try:
            changed = with_lab(text, entered["repository"], entered["lab"], targets)
        except KeyError:
            return text, (NO_SUCH_REPOSITORY.format(repository=entered["repository"]),)
        return changed, self._faults_of(changed)

    def _faults_of(self, text: str) -> tuple[str, ...]:
        if len(text.encode()) > LARGEST_CONFIG:
            return (CONFIG_TOO_LARGE.format(most=LARGEST_CONFIG // 1024),)
        try:
            parse_config(text.encode(), str(self.files.config.path))
        except ConfigError as error:
            return tuple(map(str, error.faults))
        return ()

    async def _probe(self, _: web.Request) -> web.StreamResponse:
        """Answer with what only this process knows, so that it recognizes itself behind its public address."""
        return web.Response(text=self._name, headers=NEVER_STORED)

    async def _reach(self, public_url: str) -> str:
        """Return why the public address does not lead to this process; empty if it does."""
        try:
            async with self.http.get(f"{public_url}{PROBE}", allow_redirects=False, timeout=PROBE_TIMEOUT) as answer:
                body = await answer.content.read(len(self._name) + 1)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return PROBE_FAILED.format(reason=type(error).__name__)
        return "" if body == self._name.encode() else PROBE_OTHER.format(status=answer.status)

    async def _start(self, request: web.Request) -> web.StreamResponse:
        """Write app.yaml unless it exists, and start to serve."""
        form = await self._read_form(request)
        if self.settings is None:
            return see_other(SETUP)
        if str(form.get("lab", "")).strip():
            # Somebody has named a lab, and pressed the other button: it must not be lost.
            return await self._show_labs(request, self.settings, form, adds=True)
        if "config" in form:
            text = str(form["config"]).replace("\r\n", "\n")
            if problems := self._write_config(text):
                return await self._show_install(request, self.settings, text, problems)
        elif problems := self._existing_config():
            return await self._show_install(request, self.settings, problems=problems)
        # From here on, new connections wait for the bot, and the browser makes one for the next page.
        await self.stop_listening()
        self.ready.set()
        answer = see_other(CHECKS)
        answer.force_close()
        return answer

    async def _read_form(self, request: web.Request) -> Mapping[str, object]:
        """Return the fields of a form that one of our pages sent. Raises `Problem` for any other request."""
        self.files.gate.check(request)  # check before reading a stranger's body
        try:
            form = await request.post()
        except ValueError:  # not a form, or an incomplete one
            raise Problem(400, BAD_FORM) from None
        self.files.gate.check_form(request, form.get(FORM_FIELD))
        return form

    def _existing_config(self) -> tuple[str, ...]:
        path = self.files.config.path
        try:
            parse_config(path.read_bytes(), str(path))
        except ConfigError as error:
            return tuple(map(str, error.faults))
        except OSError as error:
            return (CANNOT_WRITE.format(path=path, reason=_reason(error)),)
        return ()

    def _write_config(self, text: str) -> tuple[str, ...]:
        path = self.files.config.path
        if faults := self._faults_of(text):
            return faults
        try:
            self.files.config.reserve()
            self.files.config.write(text)
        except FileExistsError:
            return (CONFIG_EXISTS.format(path=path),)
        except OSError as error:
            return (CANNOT_WRITE.format(path=path, reason=_reason(error)),)
        return ()


def read_draft(entered: dict[str, str]) -> tuple[SetupDraft | None, dict[str, str]]:
    """Return the draft that a person entered, or the errors by field."""
    errors: dict[str, str] = {}
    site, organization, public_url = GitHubSite(), "", ""
    try:
        site = github_site(entered["github"])
    except ValueError as error:
        errors["github"] = str(error)
    try:
        organization = organization_name(entered["owner"])
    except ValueError as error:
        errors["owner"] = str(error)
    try:
        public_url = public_address(entered["public_url"], site)
    except ValueError as error:
        errors["public_url"] = str(error)
    return (None if errors else SetupDraft(site, organization, public_url)), errors


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
