"""`@ci rerun` and `@ci approve ci`: restart runs on a pull request's head, or approve those that wait for it.

`rerun` restarts the runs that failed, all, or those that the command names.

The commit shows which runs there are. The predecessor had lists of jobs, which became outdated again and again
(apache/tvm#13571, #13817, #16502), and one removed job stopped all jobs after it (#18780).

GitHub does not start the workflows of a new contributor's fork until somebody with write access has looked at them.
`approve ci` is for the commit that this person saw: the one that the comment names, or else the head at that time.
https://docs.github.com/en/actions/how-tos/manage-workflow-runs/approve-runs-from-forks
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.ci.base import CiRun, CiRunPart, CiState
from bot.ci.rerun_actions import ApproveRun
from bot.ci.restarts import PullOrigin
from bot.ci.texts import CANNOT_RESTART
from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.commands.seen_head import other_head
from bot.core.listing import MORE, listed
from bot.core.nearest import nearest_names
from bot.core.patterns import SPACE, Pattern, glob, is_glob
from bot.github.text.markdown import code, truncate
from bot.plan.handler import Router
from handlers.rerun import texts

FAILED = "failed"
ALL = "all"
MOST_LISTED = 10
"""The most names in one list of the answer; the answer counts the rest."""
LONGEST_NAME = 100
"""The most characters of a name that the answer shows."""

RERUN = CommandSpec(
    name="rerun",
    summary=texts.RERUN_SUMMARY,
    example="rerun",
    feature="rerun",
    synonyms=(
        *("re-run", "rerun ci", "re-run ci", "retest"),
        *("rerun tests", "rerun the tests", "re-run tests", "re-run the tests"),
    ),
    phrases=("run", "run ci", "rerun failed jobs"),
    arguments=Arguments(choices=(FAILED, ALL), names="NAME…"),
)

APPROVE_CI = CommandSpec(
    name="approve ci",
    summary=texts.APPROVE_SUMMARY,
    example="approve ci",
    feature="rerun",
    allowed=("write",),
    # GitHub allows this only to people with write access, so app.yaml cannot allow it to others.
    fixed=True,
    synonyms=("approve the ci", "approve workflows", "approve the workflows"),
    arguments=Arguments(names="SHA"),
)

_LINK = Pattern(rf"https?://[^{SPACE}()<>\\]+")
_EVENT = Pattern(r" \((?:push|pull_request|pull_request_target|merge_group|schedule|workflow_dispatch)\)$")
"""The event that GitHub's pages add to the names of checks; people copy it."""

router = Router()


@dataclass(frozen=True, slots=True)
class RerunPick:
    """One rerun: a whole run, its failed parts, or one part."""

    run: CiRun
    failed_only: bool
    part: CiRunPart | None = None


@dataclass(frozen=True, slots=True)
class RerunDecision:
    """The runs of a command by what happens to them; `unmatched` are names that no run has."""

    picks: tuple[RerunPick, ...] = ()
    running: tuple[CiRun, ...] = ()
    unapproved: tuple[CiRun, ...] = ()
    untouchable: tuple[CiRun, ...] = ()
    missing: tuple[CiRun, ...] = ()
    unmatched: tuple[str, ...] = ()
    named: bool = False
    """Whether the command named runs, so that the answer leaves out all others."""


def decide_rerun(runs: Sequence[CiRun], choice: str, names: Sequence[str]) -> RerunDecision:
    """Pick the runs to restart: those that failed, all that ended, or those that the names match."""
    titles = [list(_titles(run)) for run in runs]
    all_titles = {title for run_titles in titles for title, _ in run_titles}
    matches = [[_match(name, run_titles, all_titles) for name in names] for run_titles in titles]
    chosen = _chosen_runs(runs, matches) if names else [(run, None) for run in runs]
    picks, running, unapproved, untouchable, missing = [], [], [], [], []
    for run, parts in chosen:
        if run.untouchable:
            if names or choice == ALL or run.state in (CiState.FAILED, CiState.UNAPPROVED):
                untouchable.append(run)
        elif run.state is CiState.UNAPPROVED:
            unapproved.append(run)
        elif run.state is CiState.MISSING:
            if names or choice == ALL or _lost_the_push(run, runs):
                picks.append(RerunPick(run, failed_only=False))
            else:
                missing.append(run)
        elif run.state is CiState.RUNNING:
            running.append(run)
        elif names:
            picks.append(_pick(run, parts))
        elif choice == ALL or run.state is CiState.FAILED:
            picks.append(RerunPick(run, failed_only=choice != ALL))
    unmatched = tuple(
        name for index, name in enumerate(names) if not any(run_matches[index] for run_matches in matches)
    )
    others = tuple(running), tuple(unapproved), tuple(untouchable), tuple(missing)
    return RerunDecision(tuple(picks), *others, unmatched, named=bool(names))


def _lost_the_push(run: CiRun, runs: Sequence[CiRun]) -> bool:
    """Say whether a job's server has posted no status at all on this commit, and so has missed the push."""
    server = (run.provider, run.server)
    return all(
        other_run.state is CiState.MISSING for other_run in runs if (other_run.provider, other_run.server) == server
    )


def _chosen_runs(
    runs: Sequence[CiRun], matches: Sequence[Sequence[Sequence[CiRunPart | None]]]
) -> list[tuple[CiRun, tuple[CiRunPart, ...] | None]]:
    """Return the runs that the names match, with the matched parts, or None for the whole run.

    `matches` has what each name matches, by run, then by name.
    """
    chosen: list[tuple[CiRun, tuple[CiRunPart, ...] | None]] = []
    for run, run_matches in zip(runs, matches, strict=True):
        parts = [part for name_matches in run_matches for part in name_matches]
        if None in parts:
            chosen.append((run, None))
        elif parts:
            chosen.append((run, tuple(dict.fromkeys(part for part in parts if part is not None))))
    return chosen


def _match(
    name: str, titles: Sequence[tuple[str, CiRunPart | None]], all_titles: Collection[str]
) -> list[CiRunPart | None]:
    """Return what a name matches in a run with these `titles`: None stands for the whole run, else its parts.

    `all_titles` has the titles of all runs. Letter case does not matter. A name that is the title of something is not a
    pattern: jobs may be called `build [arm]`.
    """
    folded_name = _EVENT.sub("", name).casefold()
    if folded_name in all_titles or not is_glob(folded_name):
        return [part for title, part in titles if title == folded_name]
    pattern = glob(folded_name)
    return [part for title, part in titles if pattern.fullmatch(title)]


def _titles(run: CiRun) -> Iterator[tuple[str, CiRunPart | None]]:
    yield run.name.casefold(), None
    for part in run.parts:
        yield part.name.casefold(), part
        yield f"{run.name} / {part.name}".casefold(), part


def _pick(run: CiRun, parts: tuple[CiRunPart, ...] | None) -> RerunPick:
    """Choose the smallest rerun that covers the named parts: GitHub restarts one job, all failed jobs, or all jobs."""
    if parts is None:
        return RerunPick(run, failed_only=run.state is CiState.FAILED)
    # https://docs.github.com/rest/actions/workflow-runs#re-run-a-job-from-a-workflow-run
    if len(parts) == 1 and parts[0].id:
        return RerunPick(run, failed_only=False, part=parts[0])
    return RerunPick(run, failed_only=all(part.state is CiState.FAILED for part in parts))


def explain_rerun(runs: Sequence[CiRun], decision: RerunDecision, sha: str, mention: str) -> str:
    """Write the answer: which runs are restarted on which commit, which are not, and why."""
    quoted_sha = code(sha[:7])
    if not runs:
        return texts.NOT_STARTED_YET.format(sha=quoted_sha)
    return "\n".join(
        [*_list_restarts(decision.picks, quoted_sha), *_explain_others(runs, decision, quoted_sha, mention)]
    ).strip()


def _explain_others(runs: Sequence[CiRun], decision: RerunDecision, sha: str, mention: str) -> Iterator[str]:
    if not (decision.picks or decision.untouchable or decision.unapproved or decision.named):
        ended = [run.name for run in runs if run.state not in (CiState.RUNNING, CiState.MISSING)]
        text = texts.NOTHING_FAILED if ended else texts.NOTHING_FINISHED
        yield text.format(sha=sha, names=_list_names(ended), command=code(f"{mention} {RERUN.name} {ALL}"))
    yield from _unknown_names(runs, decision.unmatched, sha)
    if decision.running:
        yield texts.STILL_RUNNING.format(names=_names(decision.running))
    if decision.missing:
        command = code(f"{mention} {RERUN.name} NAME")
        yield texts.NO_STATUS.format(sha=sha, names=_names(decision.missing), command=command)
    if decision.unapproved:
        command = code(f"{mention} {APPROVE_CI.name}")
        yield texts.WAITS_FOR_APPROVAL.format(names=_names(decision.unapproved), command=command)
    for run in decision.untouchable[:MOST_LISTED]:
        yield CANNOT_RESTART.format(name=_quoted(run.name), reason=run.untouchable)
    if (unlisted := len(decision.untouchable) - MOST_LISTED) > 0:
        yield texts.MORE_NOT_RESTARTED.format(count=unlisted)


def _unknown_names(runs: Sequence[CiRun], unknown: Sequence[str], sha: str) -> Iterator[str]:
    titles = list(dict.fromkeys(title for run in runs for title in run.names))
    for name in unknown:
        close = nearest_names(name, titles)
        proposal = (
            texts.DID_YOU_MEAN.format(names=_list_names(close)) if close else texts.AVAILABLE.format(names=_names(runs))
        )
        # The name of a check has a slash, and `tvm-cpu/pr-head` is near to `tvm-gpu/pr-head`, but is another check.
        reason = texts.NOT_REPORTED if "/" in name or not close else ""
        yield texts.UNKNOWN_NAME.format(sha=sha, name=_quoted(name)) + reason + proposal


def _list_restarts(picks: Sequence[RerunPick], sha: str) -> Iterator[str]:
    if not picks:
        return
    yield texts.RESTARTING.format(sha=sha)
    for pick in picks[:MOST_LISTED]:
        yield f"- {_describe_pick(pick)}"
    if (unlisted := len(picks) - MOST_LISTED) > 0:
        yield f"- {MORE.format(count=unlisted)}"
    yield ""  # ends the list


def _describe_pick(pick: RerunPick) -> str:
    run = texts.RESTARTED_RUN.format(run=_link(pick.run), provider=pick.run.provider, ended=_ended_text(pick.run))
    if pick.part is not None:
        return texts.ONE_JOB.format(job=_quoted(pick.part.name), run=run)
    some_jobs = pick.failed_only and len(pick.run.parts) > 1 and pick.run.parts[0].id
    return texts.FAILED_JOBS.format(run=run) if some_jobs else run


def _ended_text(run: CiRun) -> str:
    if run.state is CiState.MISSING:
        return texts.NOT_BEGUN
    ended = texts.ABORTED if run.conclusion == "aborted" else _quoted(run.conclusion)
    return texts.STATUS_PENDING.format(ended=ended) if run.is_outdated else ended


def _link(run: CiRun) -> str:
    if not _LINK.fullmatch(run.url):
        return _quoted(run.name)
    return f"[{_quoted(run.name)}]({run.url})"


def _quoted(name: str) -> str:
    return code(truncate(name, LONGEST_NAME))


def _names(runs: Iterable[CiRun]) -> str:
    return _list_names(run.name for run in runs)


def _list_names(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return listed([_quoted(name) for name in distinct[:MOST_LISTED]], MOST_LISTED, len(distinct))


async def rerun(request: CommandRequest, command: Command) -> CommandAnswer:
    """Restart the requested runs, on the head that the person saw."""
    pull = request.pull
    if not pull.is_open:
        return CommandAnswer(say=texts.CLOSED, done=False)
    if request.known_head is not None and request.known_head != pull.head_sha:
        moved = texts.HEAD_MOVED.format(old=code(request.known_head[:7]), new=code(pull.head_sha[:7]))
        return CommandAnswer(say=moved, done=False)
    found_runs = await request.runs()
    mention = request.mention
    # In a thread, because 20 names and thousands of jobs take a tenth of a second. `tests/handlers/rerun` shows
    # that the time is linear.
    decision = await asyncio.to_thread(decide_rerun, found_runs.runs, command.choice or FAILED, command.names)
    explanation = await asyncio.to_thread(explain_rerun, found_runs.runs, decision, pull.head_sha, mention)
    effects = tuple(found_runs.rerun(pick.run, failed_only=pick.failed_only, part=pick.part) for pick in decision.picks)
    # While a CI is unavailable, "nothing ran" would be a guess.
    explained = [] if found_runs.troubles and not found_runs.runs else [explanation]
    say = "\n".join([*explained, *found_runs.troubles])
    undone = found_runs.troubles or decision.unmatched or not found_runs.runs
    all_left_alone = bool(decision.untouchable or decision.unapproved) and not effects
    return CommandAnswer(effects, say, done=not (undone or all_left_alone))


async def approve_ci(request: CommandRequest, command: Command) -> CommandAnswer:
    """Approve the waiting workflow runs of the head that the person saw."""
    pull = request.pull
    if not pull.is_open:
        return CommandAnswer(say=texts.APPROVE_CLOSED, done=False)
    if refusal := await other_head(request, command):
        return CommandAnswer(say=refusal, done=False)
    found_runs = await request.runs()
    waiting = [run for run in found_runs.runs if run.state is CiState.UNAPPROVED and not run.untouchable]
    sha = code(pull.head_sha[:7])
    if not waiting:
        say = "\n".join([*([] if found_runs.troubles else [texts.NOTHING_WAITS.format(sha=sha)]), *found_runs.troubles])
        return CommandAnswer(say=say, done=not found_runs.troubles)
    origin = PullOrigin.of(pull)
    effects = tuple(ApproveRun(int(run.key), pull.head_sha, run.name, origin) for run in waiting)
    say = "\n".join([texts.APPROVING.format(sha=sha, names=_run_names(waiting)), *found_runs.troubles])
    return CommandAnswer(effects, say, done=not found_runs.troubles)


def _run_names(runs: list[CiRun]) -> str:
    return listed([code(truncate(run.name, 100)) for run in runs[:MOST_LISTED]], MOST_LISTED, len(runs))


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((RERUN, rerun), (APPROVE_CI, approve_ci))
