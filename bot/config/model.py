"""Every key of app.yaml. The JSON schema, the docs and the error texts are generated from this description."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, get_args

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from bot.config.alarms import MainFailures, Regressions
from bot.config.api import Api
from bot.config.ci_decisions import RebuildDocker, SkipCi
from bot.config.ci_tests import Runtime, SkippedTests, Tests
from bot.config.commands import Commands
from bot.config.docker_update import DockerUpdate
from bot.config.docs_link import DocsLink
from bot.config.http import Http
from bot.config.keys import ConfigKey, K, Keys, key_types
from bot.config.last_good import LastGood
from bot.config.lint import Lint
from bot.config.log import LOG, Log
from bot.config.merge import Merge
from bot.config.nightly import Nightly
from bot.config.quarantine import QuarantinedTests, check_targets
from bot.config.renames import TestRenames
from bot.config.results import Results, check_audience
from bot.config.stale_reviews import StaleReviews
from bot.config.teams import Teams
from bot.config.texts import BRANCH_IN_USE, NEEDS_RESULTS, UNKNOWN_LAB
from bot.config.types import (
    LACKING,
    EncryptedAddress,
    JobName,
    Mention,
    Operator,
    Pattern,
    RepositoryName,
    Role,
    Section,
    Shared,
    StatusContext,
    WebAddress,
)
from bot.config.welcome import Welcome
from bot.core.aliases import Aliases
from bot.core.schedule import Schedule


class SlowTests(Keys):
    """`@ci run slow tests`: slow tests run for a pull request when someone asks, and always on some branches."""

    status: StatusContext = Field(
        default="ci/slow-tests",
        description="Context of the commit status that shows whether slow tests are on, and why.",
        examples=["ci/slow-tests"],
    )
    branches: Shared[tuple[Pattern, ...]] = Field(
        default=("main",),
        description="Branches that always run everything: pushes to them, and pull requests from them.",
        examples=[["main", "release/*"]],
    )
    allow: Shared[tuple[Role, ...]] = Field(
        default=("author", "triage"),
        min_length=1,
        description=(
            "Who may use the command: the pull request's author (`author`), and people with one of these "
            "roles or a higher one."
        ),
        examples=[["author", "triage"]],
    )
    rerun: Shared[tuple[Pattern, ...]] = Field(
        default=("*",),
        description=(
            "Workflows and status contexts to rerun if slow tests are switched on after CI has ended. An "
            "empty list: none."
        ),
        examples=[["*/pr-head"]],
    )


class JenkinsServer(Keys):
    """A Jenkins server whose jobs may be started."""

    url: EncryptedAddress = Field(
        description="Address of the server. The bot calls only jobs below it, with JENKINS_USER and JENKINS_TOKEN.",
        examples=["https://ci.example.org"],
    )
    jobs: tuple[JobName, ...] = Field(
        default=(),
        description=(
            "Multibranch jobs that build every pull request. If Jenkins missed a push, so that none of "
            "its jobs has a status on the head, `@ci rerun` starts them; `@ci rerun NAME` and `@ci rerun "
            "all` always do."
        ),
        examples=[["tvm-cpu", "tvm-gpu"]],
    )


class Rerun(Keys):
    """`@ci rerun`: the bot runs again what failed on a pull request's head."""

    allow: Shared[tuple[Role, ...]] = Field(
        default=("author", "triage"),
        min_length=1,
        description=(
            "Who may use the command: the pull request's author (`author`), and people with one of these "
            "roles or a higher one."
        ),
        examples=[["author", "triage"]],
    )
    jenkins: tuple[JenkinsServer, ...] = Field(
        default=(),
        description="Jenkins servers whose jobs the bot may start. GitHub Actions needs no entry.",
        examples=[[{"url": "https://ci.example.org"}]],
    )


class CcReviewers(Keys):
    """`cc @hubot` in a pull request's body: the bot asks those named for a review."""


class Help(Keys):
    """`@ci help`: lists the commands that are on in this repository."""


class RepositoryConfig(Keys):
    """What the bot does in one repository."""

    # A feature that is None is switched off.

    slow_tests: Shared[Annotated[SlowTests | None, Section(switch=True)]] = Field(
        default=SlowTests(),
        description="`@ci run slow tests` enables slow tests for a pull request.",
        examples=[{"status": "ci/slow-tests", "branches": ["main"]}],
    )
    rerun: Shared[Annotated[Rerun | None, Section(switch=True)]] = Field(
        default=Rerun(),
        description="`@ci rerun` reruns failed jobs of a pull request's head.",
        examples=[{"jenkins": [{"url": "https://ci.example.org"}]}],
    )
    cc_reviewers: Shared[Annotated[CcReviewers | None, Section(switch=True)]] = Field(
        default=CcReviewers(),
        description="`cc @hubot` in a pull request's description requests a review.",
        examples=[False],
    )
    help: Shared[Annotated[Help | None, Section(switch=True)]] = Field(
        default=Help(),
        description="`@ci help` lists the enabled commands.",
        examples=[False],
    )
    results: Annotated[Results | None, Section(switch=True)] = Field(
        default=None,
        description="Publishes results of hardware labs as advisory check runs, which never block a merge.",
        examples=[{"bucket": "device-results", "labs": {"example-lab": {"targets": ["hexagon-v73"]}}}],
    )

    nightly: Annotated[Nightly | None, Section(switch=True)] = Field(
        default=None,
        description="Moves a branch once a day, so that all labs test one commit.",
        examples=[{"from": "main", "at": "21:00", "require": ["*/branch"]}],
    )

    last_good: Annotated[LastGood | None, Section(switch=True)] = Field(
        default=None,
        description="Moves a branch to the newest commit on which everything required is green.",
        examples=[{"branch": "last-successful", "every": "15m", "require": ["*/branch"]}],
    )
    main_failures: Annotated[MainFailures | None, Section(switch=True)] = Field(
        default=None,
        description="Reports checks that begin to fail on a branch, and their recovery.",
        examples=[{"branches": ["main"], "to": ["discord"]}],
    )
    regressions: Annotated[Regressions | None, Section(switch=True)] = Field(
        default=None,
        description="Reports confirmed regressions that labs found on the nightly branch. Needs `results`.",
        examples=[{"to": ["discord"]}],
    )
    merge: Annotated[Merge | None, Section(switch=True)] = Field(
        default=None,
        description="`@ci merge` merges a pull request now or when it is green, for people with write access.",
        examples=[{"required": ["*/pr-head"], "method": "squash", "hold_labels": ["hold"]}],
    )
    docs: Annotated[DocsLink | None, Section(switch=True)] = Field(
        default=None,
        description="Links the docs that CI built for the head, in the sticky comment.",
        examples=[{"context": "docs/pr-head", "link": "https://docs.example.org/PR-{number}/{build}/index.html"}],
    )
    skipped_tests: Annotated[SkippedTests | None, Section(switch=True)] = Field(
        default=None,
        description="Lists tests that are skipped now and ran at the merge base, in the sticky comment.",
        examples=[{"workflow": "CI", "artifacts": ["test-results-*"], "required": "ci/required_tests.json"}],
    )
    runtime: Annotated[Runtime | None, Section(switch=True)] = Field(
        default=None,
        description=(
            "Lists suites that became much slower than at the base, and slow new tests, in the sticky comment."
        ),
        examples=[{"workflow": "CI", "artifacts": ["test-results-*"]}],
    )
    skip_ci: Annotated[SkipCi | None, Section(switch=True)] = Field(
        default=None,
        description="Lets CI skip a pull request because of its title or its changed files.",
        examples=[{"title_tag": "skip ci", "globs": ["*.md", ".github/*", "LICENSE"]}],
    )
    rebuild_docker: Annotated[RebuildDocker | None, Section(switch=True)] = Field(
        default=None,
        description="Says whether CI must rebuild Docker images. Without this key: always.",
        examples=[{"paths": ["docker/*"], "ignore": ["*.md", "docker/bash.sh"]}],
    )
    stale_reviews: Annotated[StaleReviews | None, Section(switch=True)] = Field(
        default=None,
        description="Reminds reviewers of pull requests without activity.",
        examples=[{"after": "7d", "every": "15m", "limit": 5}],
    )
    teams: Annotated[Teams | None, Section(switch=True)] = Field(
        default=None,
        description="Mentions the subscribers of a topic once, when a title's `[tag]` or a label names it.",
        examples=[{"topics": {"hexagon": ["@octocat", "@hubot"]}, "issue": 10317}],
    )
    docker_update: Annotated[DockerUpdate | None, Section(switch=True)] = Field(
        default=None,
        description="Proposes the newest tags of CI's Docker images every day, in one pull request.",
        examples=[{"file": "ci/jenkins/docker-images.ini"}],
    )
    lint: Annotated[Lint | None, Section(switch=True)] = Field(
        default=None,
        description="Writes the advisory check run `nightjar/lint` about a pull request's title and description.",
        examples=[{"tags": ["tests", "docs", "hexagon"]}],
    )
    welcome: Annotated[Welcome | None, Section(switch=True)] = Field(
        default=None,
        description="Greets first-time contributors in the sticky comment.",
        examples=[True],
    )
    renames: TestRenames = Field(
        default=(),
        description=(
            "Renamed tests, in all suites of all labs, that the bot did not recognize by itself. History and "
            "comparisons continue under the new name. Stored results do not change, so removing an item undoes it."
        ),
        examples=[[{"from": "kernel.poll.*", "to": "poll.*"}, {"from": "net.tcp.test_open", "to": "net.tcp.open"}]],
    )
    quarantine: QuarantinedTests = ()
    api: Annotated[Api, Section(switch=False)] = Field(
        default=Api(),
        description="Access to `/api/v1` for this repository.",
        examples=[{"private": True}],
    )
    repository_file: bool = Field(
        default=True,
        description=(
            "Whether the bot reads `.github/nightjar.yaml` on the default branch, where the repository's "
            "maintainers set some of these keys."
        ),
        examples=[False],
    )

    @field_validator("regressions")
    @classmethod
    def _regressions_need_results(cls, regressions: Regressions | None, info: ValidationInfo) -> Regressions | None:
        """Raise an error of type LACKING if there are no results; if they are invalid, that is the only error."""
        if regressions is not None and "results" in info.data and info.data["results"] is None:
            raise PydanticCustomError(LACKING, NEEDS_RESULTS)
        return regressions

    @field_validator("skipped_tests", "runtime")
    @classmethod
    def _lab_exists(cls, tests: Tests | None, info: ValidationInfo) -> Tests | None:
        """Raise an error of type LACKING if there is no such lab; if labs are invalid, that is the only error."""
        if tests is not None and tests.lab is not None and "results" in info.data:
            results = info.data["results"]
            lab = results.labs.get(tests.lab) if results else None
            if lab is None or tests.target not in lab.targets:
                raise PydanticCustomError(LACKING, UNKNOWN_LAB, {"lab": tests.lab, "target": tests.target})
        return tests

    @field_validator("quarantine")
    @classmethod
    def _targets_exist(cls, quarantine: QuarantinedTests, info: ValidationInfo) -> QuarantinedTests:
        """Raise an error of type LACKING for tests of no lab; if labs are invalid, that is the only error."""
        if "results" in info.data:
            check_targets(quarantine, info.data["results"])
        return quarantine

    @field_validator("last_good", "docker_update")
    @classmethod
    def _branch_is_not_shared(
        cls, feature: LastGood | DockerUpdate | None, info: ValidationInfo
    ) -> LastGood | DockerUpdate | None:
        """Raise ValueError if another feature moves the same branch."""
        for other in ("nightly", "last_good"):
            mover = info.data.get(other)
            if feature is not None and mover is not None and mover.branch == feature.branch:
                raise ValueError(BRANCH_IN_USE.format(other=other))
        return feature

    @property
    def timers(self) -> dict[str, Schedule]:
        """Return the schedules of the repository's timers by their names."""
        features = {
            "nightly": self.nightly,
            "last-good": self.last_good,
            "main-failures": self.main_failures,
            "merges": self.merge,
            "stale-reviews": self.stale_reviews,
            "docker-update": self.docker_update,
        }
        return {name: feature.schedule for name, feature in features.items() if feature is not None}

    @cached_property
    def aliases(self) -> Aliases:
        """Return which names of tests stand for one another."""
        return Aliases(one.pair for one in self.renames)

    @property
    def lab_branches(self) -> tuple[str, ...]:
        """Return the branches whose commits labs test."""
        if self.results is not None and self.results.branches is not None:
            return self.results.branches
        return ((self.nightly or Nightly()).branch,)

    @cached_property
    def features(self) -> frozenset[str]:
        """Return the keys of the features that are switched on."""
        switched = (name for name, kind in key_types(type(self)).items() if Section(switch=True) in get_args(kind))
        return frozenset(name for name in switched if getattr(self, name) is not None)

    def of(self, key: ConfigKey[K]) -> K | None:
        """Return what is set below a key that a feature declares; None: the feature is off."""
        value = getattr(self, key.name, None)
        return value if isinstance(value, key.model) else None

    def allowed(self, feature: str) -> tuple[Role, ...] | None:
        """Return who may use a feature; None if it has no `allow`, or is off."""
        match getattr(self, feature, None):
            case SlowTests(allow=allow) | Rerun(allow=allow) | Results(approve_tests=allow):
                return allow
            case _:
                return None


class Config(Keys):
    """What app.yaml says; `defaults` is already merged into each of `repositories`."""

    mentions: tuple[Mention, ...] = Field(
        default=("@ci",),
        min_length=1,
        description=(
            "Names that address the bot, as in `@ci help` or `/ci help`. Case doesn't matter. GitHub "
            "notifies the owner of a mentioned login, and `@ci` is somebody's login: use `/ci`, or the "
            "login of your own machine account."
        ),
        examples=[["/ci", "@hubot"]],
    )
    public_url: WebAddress | None = Field(
        default=None,
        description="Public address of this server, for links in comments and statuses.",
        examples=["https://ci.example.org"],
    )
    operators: tuple[Operator, ...] = Field(
        default=(),
        max_length=100,
        description=(
            "Who can see `/operate` after signing in, and replay deliveries: IDs of people, logins, and teams of "
            "an organization with a repository below `repositories`. Prefer IDs and teams: a login may change "
            "hands."
        ),
        examples=[["583231", "@octo-org/compiler"]],
    )
    commands: Annotated[Commands, Section(switch=False)] = Field(
        default=Commands(),
        description="Limits on commands per hour.",
        examples=[{"per_person": 30, "per_pull_request": 60}],
    )
    http: Annotated[Http, Section(switch=False)] = Field(
        default=Http(), description="Limits for anonymous HTTP clients.", examples=[{"megabytes_in_flight": 64}]
    )
    log: Annotated[Log, Section(switch=False)] = LOG
    defaults: Annotated[RepositoryConfig, Section(switch=False)] = Field(
        default=RepositoryConfig(),
        description="Keys for all repositories. A repository's own keys override them one by one.",
        examples=[{"cc_reviewers": False}],
    )
    repositories: Mapping[RepositoryName, Annotated[RepositoryConfig, Section(switch=False)]] = Field(
        min_length=1,
        description="The repositories in which the bot works. It ignores all others.",
        examples=[{"octocat/compiler": {}}],
    )

    _tokens_have_an_audience = field_validator("repositories")(check_audience)

    def repository(self, full_name: str) -> RepositoryConfig | None:
        """Return the settings of `owner/name`, in any case of letters; None if app.yaml does not list it."""
        return self._by_lower_name.get(full_name.lower())

    @cached_property
    def _by_lower_name(self) -> dict[str, RepositoryConfig]:
        return {name.lower(): repository for name, repository in self.repositories.items()}
