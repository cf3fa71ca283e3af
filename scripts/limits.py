"""Generate the table of limits in docs/security.md from the constants that enforce them."""

from __future__ import annotations

from dataclasses import fields

from bot.commands import grammar as commands
from bot.commands.budget import REFUSALS_AN_HOUR
from bot.config import repository_file, source
from bot.config.commands import Commands
from bot.config.model import Http
from bot.core import patterns
from bot.core.docs import table
from bot.core.untrusted import limits as untrusted
from bot.core.untrusted.limits import AllLimits
from bot.engine import retry, service
from bot.engine.worker import guard
from bot.github.limits import governor, ledger
from bot.results.compare import renames
from bot.web import app, bodies, connections, login, pages, webhook
from bot.web.sign_in import forms, sessions
from handlers.ci_reports import artifacts, zips
from handlers.labs import bodies as lab_bodies
from handlers.labs import calls, routes

MIB = 1 << 20


def limits_table() -> str:
    """Return the limits of the server as a Markdown table: what is limited, the limit, and what happens above it."""
    rows = [*_requests(), *_pages(), *_labs(), *_people(), *_github(), *_work(), *_texts()]
    return table(["what", "limit", "above it"], rows)


def _requests() -> list[tuple[str, str, str]]:
    http = Http()
    return [
        ("Body of a webhook", f"{webhook.MAX_BODY // MIB} MiB", "413"),
        ("Bodies in memory together", f"{http.megabytes_in_flight} MiB (`http.megabytes_in_flight`)", "503"),
        ("Time for a body to arrive", f"{bodies.READ_SECONDS:g} s", "408"),
        ("Time for the headers of a new connection", f"{connections.HEAD_SECONDS:g} s", "closed"),
        ("Idle connection", f"{connections.IDLE_SECONDS:g} s", "closed"),
        ("Headers of a request; one line of them", f"{app.MOST_HEADERS}; {app.LONGEST_LINE:,} bytes", "400"),
        (
            "Open connections",
            f"{http.connections} (`http.connections`), at most half of the descriptors",
            "the place of an idle connection; 503 if there is none",
        ),
        ("Time to store a delivery", f"{service.ACCEPT_TIMEOUT:g} s", "503; the bot asks GitHub for it later"),
        (
            "GitHub quota for API requests without a token",
            f"{http.anonymous_percent} % of the hourly quota (`http.anonymous_percent`)",
            "answered from memory",
        ),
    ]


def _pages() -> list[tuple[str, str, str]]:
    http, hours = Http(), int(sessions.SESSION_SECONDS // 3600)
    return [
        ("Pages that one address may request in a minute", f"{http.pages_per_minute} (`http.pages_per_minute`)", "429"),
        ("Pages that are being rendered or wait", f"{pages.MOST_WAITING}", "503"),
        (
            "A form; all forms that are arriving",
            f"{forms.FORM_BYTES // 1024} KiB; {_mib(forms.FORMS_IN_FLIGHT)}",
            "413; 503",
        ),
        ("Time for a sign-in", f"{login.SIGN_IN_SECONDS // 60} minutes", "it starts over"),
        ("Sessions of a person", f"{sessions.MOST_SESSIONS}, of {hours} hours each", "the oldest ends"),
    ]


def _labs() -> list[tuple[str, str, str]]:
    return [
        ("Calls of one lab in a minute", f"{calls.CALLS_PER_MINUTE}", "429"),
        (
            "Refused tokens of one address in a minute",
            f"{calls.REFUSALS_PER_MINUTE}",
            "429 for tokens that were never accepted",
        ),
        (
            "Body of a lab's call; all that are arriving",
            f"{routes.MOST_BODY // 1024} KiB; {_mib(routes.MOST_BODIES)}",
            "413; 503",
        ),
        (
            "Waiting claims of one lab",
            f"{routes.MOST_WAITING}, for {lab_bodies.LONGEST_WAIT} s; of all labs, half of `http.connections`",
            "429; 503",
        ),
    ]


def _mib(count: int) -> str:
    return f"{count // MIB} MiB"


def _people() -> list[tuple[str, str, str]]:
    budget = Commands()
    return [
        ("Commands in one comment", f"{commands.MOST_COMMANDS}", "the rest is ignored, and the answer says so"),
        (
            "Commands of one person in an hour",
            f"{budget.per_person} (`commands.per_person`)",
            "one answer that says so",
        ),
        (
            "Commands on one pull request in an hour",
            f"{budget.per_pull_request} (`commands.per_pull_request`)",
            "one answer that says so",
        ),
        (
            "Commands of a person who may not run them",
            f"one explanation per pull request, {REFUSALS_AN_HOUR} reactions an hour",
            "nothing",
        ),
    ]


def _github() -> list[tuple[str, str, str]]:
    return [
        ("Simultaneous requests to GitHub", f"{governor.IN_FLIGHT}", "wait"),
        (
            "Writes of one installation, by all replicas together",
            f"{ledger.WRITES_PER_MINUTE} a minute and {ledger.WRITES_PER_HOUR} an hour",
            "wait; people with the write role go first",
        ),
    ]


def _work() -> list[tuple[str, str, str]]:
    all_limits = AllLimits()
    kinds = [getattr(all_limits, field.name) for field in fields(all_limits)]
    return [
        *(
            (
                f"{kind.act[0].upper()}{kind.act[1:]}",
                f"{kind.cpu:g} s of CPU time, {kind.wall:g} s, {kind.memory // MIB:,} MiB",
                "fails with an error that names the limit",
            )
            for kind in kinds
        ),
        (
            "Jobs that wait for a process",
            f"{untrusted.MOST_WAITING}; {untrusted.MOST_WAITING_OF_REPOSITORY} of a repository, "
            f"{untrusted.MOST_WAITING_OF_OWNER} of a pull request or lab target",
            f"tried again after {untrusted.COME_BACK:g} s",
        ),
        ("One try of a job", f"{guard.JOB_SECONDS:g} s", "ends, and is tried again"),
        (
            "Crashes of a process that runs only one job",
            f"{retry.MAX_ALONE}",
            "the job is quarantined: it fails, and runs again an hour later",
        ),
        (
            "Search for renamed tests",
            f"{renames.MAX_STEPS:,} steps",
            "the bot recognizes no renames; the check run says so",
        ),
    ]


def _texts() -> list[tuple[str, str, str]]:
    return [
        ("Memory of one pattern", f"{patterns.MAX_MEMORY // MIB} MiB", "slower, but still linear"),
        ("`app.yaml`", f"{source.MAX_BYTES // 1024} KiB, depth {source.MAX_DEPTH}", "an error that names the limit"),
        (
            "`.github/nightjar.yaml`",
            f"{repository_file.MOST_BYTES // 1024} KiB",
            "not read; the check run `nightjar/config` says so",
        ),
        (
            "Artifacts of one workflow run",
            f"{artifacts.MOST_ARTIFACTS}, of {artifacts.MAX_ARTIFACT_BYTES // MIB} MiB each, "
            f"with {zips.MOST_FILES:,} files each",
            "left out, and named",
        ),
        ("Files and manifests of labs", "[Limits](labs.md#limits) in labs.md", "refused with a reason"),
    ]
