"""Count the requests of each feature to GitHub, right after a start and with warm caches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage
from sandbox import PullRequest, Request

TITLE = "Requests to GitHub by what happens on a pull request"
TITLE_OF_PULL, BODY = "Make it faster", "It reads less."
Happening = Callable[[BenchmarkStage, PullRequest | None], None]


def _opened(text: str) -> Happening:
    def happen(stage: BenchmarkStage, _: PullRequest | None) -> None:
        stage.repo.open_pull_request("hubot", TITLE_OF_PULL, text)

    return happen


def _commented(text: str) -> Happening:
    def happen(_: BenchmarkStage, pull: PullRequest | None) -> None:
        assert pull is not None
        pull.comment("hubot", text)

    return happen


def _pushed(_: BenchmarkStage, pull: PullRequest | None) -> None:
    assert pull is not None
    pull.push({"README.md": "# better\n"})


def _reported(stage: BenchmarkStage, pull: PullRequest | None) -> None:
    assert pull is not None
    stage.repo.set_status("hubot", pull.head_sha, "gpu/pr-head", "success")


def _failing(stage: BenchmarkStage, pull: PullRequest) -> None:
    run = stage.repo.add_workflow_run(pull.head_sha, "CI", jobs={"lint": None, "unit tests": None})
    run.finish("failure", {"lint": "success", "unit tests": "failure"})


@dataclass(frozen=True, slots=True)
class CountedCase:
    """Something that happens on an existing pull request, or on a new one (`opens`). `prepare` doesn't count."""

    label: str
    happen: Happening
    opens: bool = False
    prepare: Callable[[BenchmarkStage, PullRequest], None] | None = None


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
    CountedCase("`@ci rerun`, one Actions run failed", _commented("@ci rerun"), prepare=_failing),
    CountedCase("`@ci rerun`, nothing failed", _commented("@ci rerun")),
)


async def measure(options: Options) -> list[Row]:
    """Let everything happen twice: to a bot that has just started, then again on another pull request."""
    async with open_stage(options.database) as stage:
        rows = [await _start(stage)]
        for case in CASES:
            await _restarted(stage)
            cold = await _counted(stage, case)
            warm = await _counted(stage, case)
            rows.append(_row(case.label, cold, warm))
    return rows


async def _start(stage: BenchmarkStage) -> Row:
    await stage.quiet()
    cold = list(stage.github.requests.records)
    return _row("a start: own identity, missing deliveries", cold, cold)


async def _restarted(stage: BenchmarkStage) -> None:
    await stage.quiet()
    await stage.bot.stop()
    await stage.bot.start()
    await stage.quiet()


async def _counted(stage: BenchmarkStage, case: CountedCase) -> Sequence[Request]:
    pull = None
    if not case.opens:
        # No webhook reports it, or the bot would know again what it forgot at its start.
        hook, stage.app.webhook_url = stage.app.webhook_url, None
        pull = stage.repo.open_pull_request("hubot", TITLE_OF_PULL, BODY)
        if case.prepare is not None:
            case.prepare(stage, pull)
        stage.app.webhook_url = hook
    stage.github.requests.clear()
    case.happen(stage, pull)
    await stage.quiet()
    return list(stage.github.requests.records)


def _row(label: str, cold: Sequence[Request], warm: Sequence[Request]) -> Row:
    routes = Counter(f"{request.method} {request.route.removeprefix('/repos/{owner}/{repo}')}" for request in warm)
    return {
        "what": label,
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
