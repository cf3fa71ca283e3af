"""Count the requests of each feature to GitHub, right after a start and with warm caches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, stage
from sandbox import PullRequest, Request

TITLE = "Requests to GitHub by what happens on a pull request"
TITLE_OF_PULL, BODY = "Make it faster", "It reads less."
Happening = Callable[[BenchmarkStage, PullRequest | None], None]


def _opened(text: str) -> Happening:
    def happen(on: BenchmarkStage, _: PullRequest | None) -> None:
        on.repo.open_pull_request("hubot", TITLE_OF_PULL, text)

    return happen


def _commented(text: str) -> Happening:
    def happen(_: BenchmarkStage, pull: PullRequest | None) -> None:
        assert pull is not None
        pull.comment("hubot", text)

    return happen


def _pushed(_: BenchmarkStage, pull: PullRequest | None) -> None:
    assert pull is not None
    pull.push({"README.md": "# better\n"})


def _reported(on: BenchmarkStage, pull: PullRequest | None) -> None:
    assert pull is not None
    on.repo.set_status("hubot", pull.head_sha, "gpu/pr-head", "success")


def _failing(on: BenchmarkStage, pull: PullRequest) -> None:
    run = on.repo.add_workflow_run(pull.head_sha, "CI", jobs={"lint": None, "unit tests": None})
    run.finish("failure", {"lint": "success", "unit tests": "failure"})


@dataclass(frozen=True, slots=True)
class CountedCase:
    """Something that happens on an existing pull request, or on a new one (`opens`). `before` doesn't count."""

    what: str
    happen: Happening
    opens: bool = False
    before: Callable[[BenchmarkStage, PullRequest], None] | None = None


CASES = (
    CountedCase("a pull request is opened", _opened(BODY), opens=True),
    CountedCase("… with `cc @octocat`", _opened("cc @octocat"), opens=True),
    CountedCase("… with `cc @octocat` and a stranger", _opened("cc @octocat and @octo-friend"), opens=True),
    CountedCase("a push", _pushed),
    CountedCase("a comment without a command", _commented("Thanks!")),
    CountedCase("a commit status", _reported),
    CountedCase("`@ci help`", _commented("@ci help")),
    CountedCase("a typo: `@ci rerunn`", _commented("@ci rerunn")),
    CountedCase("`@ci run slow tests`", _commented("@ci run slow tests")),
    CountedCase("`@ci rerun`, one Actions run failed", _commented("@ci rerun"), before=_failing),
    CountedCase("`@ci rerun`, nothing failed", _commented("@ci rerun")),
)


async def measure(options: Options) -> list[Row]:
    """Let everything happen twice: to a bot that has just started, then again on another pull request."""
    async with stage(options.database) as on:
        rows = [await _start(on)]
        for case in CASES:
            await _restarted(on)
            cold = await _counted(on, case)
            warm = await _counted(on, case)
            rows.append(_row(case.what, cold, warm))
    return rows


async def _start(on: BenchmarkStage) -> Row:
    await on.quiet()
    cold = list(on.github.requests.records)
    return _row("a start: own identity, missing deliveries", cold, cold)


async def _restarted(on: BenchmarkStage) -> None:
    await on.quiet()
    await on.bot.stop()
    await on.bot.start()
    await on.quiet()


async def _counted(on: BenchmarkStage, case: CountedCase) -> Sequence[Request]:
    pull = None
    if not case.opens:
        # No webhook reports it, or the bot would know again what it forgot at its start.
        hook, on.app.webhook_url = on.app.webhook_url, None
        pull = on.repo.open_pull_request("hubot", TITLE_OF_PULL, BODY)
        if case.before is not None:
            case.before(on, pull)
        on.app.webhook_url = hook
    on.github.requests.clear()
    case.happen(on, pull)
    await on.quiet()
    return list(on.github.requests.records)


def _row(what: str, cold: Sequence[Request], warm: Sequence[Request]) -> Row:
    routes = Counter(f"{request.method} {request.route.removeprefix('/repos/{owner}/{repo}')}" for request in warm)
    return {
        "what": what,
        "after a start": float(len(cold)),
        "warm": float(len(warm)),
        "of these 304": float(sum(request.status == 304 for request in warm)),
        "writes": float(sum(request.points > 1 and "access_tokens" not in request.route for request in warm)),
        "points": float(sum(request.points for request in warm)),
        "warm requests": "; ".join(f"{route} ({count})" if count > 1 else route for route, count in routes.items())
        or "none",
    }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
