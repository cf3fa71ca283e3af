"""Pull requests with artifacts that are slow to read delay no command and no health check."""

from __future__ import annotations

from pathlib import Path

from bot.github.text import sticky
from tests.conversations.town import BOT, REPOSITORY, town
from tests.waiting import until

CONFIG = f"""
repositories:
  {REPOSITORY}:
    repository_file: false
    skipped_tests: {{workflow: CI, artifacts: ["*"]}}
"""
PULLS = 8
FILES, CASES = 1_500, 3_000
"""All files have one name, and every test could be in each of them."""


async def test_commands_and_health_checks_are_answered_while_hostile_artifacts_are_read(tmp_path: Path) -> None:
    cases = "".join(
        f'<testcase classname="d{n}.test_ops.T{n}" name="test_{n}"><skipped/></testcase>' for n in range(CASES)
    )
    report = f"<testsuite>{cases}</testsuite>"
    async with town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as place:
        place.repo.push("main", {f"d{n}/e{n}/test_ops.py": "" for n in range(FILES)}, by="octocat")
        hostile_pulls = [place.repo.open_pull_request("hubot", f"Faster {n}") for n in range(PULLS)]
        ordinary_pull = place.repo.open_pull_request("hubot", "Ask")
        await place.quiet()
        for pull in hostile_pulls:
            run = place.repo.add_workflow_run(pull.head_sha, "CI", event="pull_request")
            run.upload("tests", {"junit.xml": report})
            run.finish("success")
        await place.github.delivered()

        def sections() -> int:
            comments = [comment.body for pull in hostile_pulls for comment in pull.comments_by(BOT)]
            return sum("skipped-tests" in sticky.sections_of(body) for body in comments)

        comment = ordinary_pull.comment("hubot", "@ci help")

        async def answered() -> bool:
            assert (await place.ask("/healthz"))[0] == 200
            return ordinary_pull.reactions(comment, by=BOT) == ["eyes", "+1"]

        await until(answered)
        await place.quiet()
        assert sections() == PULLS
        assert await place.failures() == []
