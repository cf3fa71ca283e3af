"""The checks beside GitHub: the buckets of labs, and Jenkins."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

import aiohttp

from bot.app.doctor.findings import Check, Finding, together
from bot.aws.bucket import Bucket
from bot.aws.client import explained, in_thread
from bot.core.errors import TryAgain, UserError

if TYPE_CHECKING:
    from bot.aws.client import Aws
    from bot.config import Config
    from bot.config.environment import Settings

TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=5)
LOOK = "{server}/api/json?tree=mode"

NO_BUCKETS = "app.yaml names none"
BUCKETS_ARE_FINE = "{names} can be listed"
QUEUES_ARE_FINE = "; {queues} can be read"
QUEUE = "queue {queue}"
READ_THE_LABS_GUIDE = "docs/labs.md has the policies that the bot and labs need"
WAIT_FOR_BUCKET = "check AWS_ENDPOINT_URL, and whether this machine reaches it; the bot tries again by itself"

NO_SERVERS = "app.yaml names none"
SERVERS_ARE_FINE = "{servers} let us in"
NO_CREDENTIALS = "app.yaml names a Jenkins server, and JENKINS_USER and JENKINS_TOKEN are not set"
SET_CREDENTIALS = "set them to a Jenkins user that may build the jobs, and an API token of theirs"
NOT_LET_IN = "{server} does not let JENKINS_USER in ({status})"
RENEW_TOKEN = "give that user the permission Overall/Read, and set JENKINS_TOKEN to a valid API token of theirs"  # noqa: S105
NO_ANSWER = "{server} does not answer ({problem})"
NOT_JENKINS = "{server} answered {status}, as no Jenkins does"
CORRECT_SERVER = "check the address in app.yaml under rerun: jenkins:, and whether this machine reaches it"


async def check_buckets(config: Config, aws: Aws) -> Finding:
    """List each bucket that app.yaml names, as far as one key, and read each queue that tells of new objects."""
    results = [one.results for one in config.repositories.values() if one.results]
    places = {(one.bucket, one.prefix) for one in results}
    queues = sorted({one.queue for one in results if one.queue})
    checks = [
        *(Bucket(aws, name).check(prefix) for name, prefix in sorted(places)),
        *(in_thread(partial(_read_queue, aws, queue)) for queue in queues),
    ]
    problems = []
    for check in checks:
        try:
            await check
        except UserError as error:
            problems.append((str(error), READ_THE_LABS_GUIDE))
        except TryAgain as error:
            problems.append((str(error), WAIT_FOR_BUCKET))
    names = ", ".join(sorted({name for name, _ in places}))
    fine = BUCKETS_ARE_FINE.format(names=names) if places else NO_BUCKETS
    also = QUEUES_ARE_FINE.format(queues=", ".join(queues)) if queues else ""
    return together(Check.BUCKET, problems, fine + also)


def _read_queue(aws: Aws, queue: str) -> None:
    """Ask for a message, with the permission that the bot has anyway; it stays visible for whoever listens."""
    with explained(QUEUE.format(queue=queue)):
        aws.sqs(queue).receive_message(QueueUrl=queue, WaitTimeSeconds=0, VisibilityTimeout=0, MaxNumberOfMessages=1)


async def check_jenkins(config: Config, settings: Settings, http: aiohttp.ClientSession) -> Finding:
    """Ask each Jenkins server that app.yaml names for its front page, as the user that starts jobs."""
    servers = sorted({server.url for one in config.repositories.values() if one.rerun for server in one.rerun.jenkins})
    if not servers:
        return Finding(Check.JENKINS, NO_SERVERS)
    if settings.jenkins_user is None or settings.jenkins_token is None:
        return Finding(Check.JENKINS, NO_CREDENTIALS, SET_CREDENTIALS)
    secret = f"{settings.jenkins_user}:{settings.jenkins_token.get_secret_value()}"
    headers = {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
    found = [problem for server in servers if (problem := await _problem(http, server, headers)) is not None]
    return together(Check.JENKINS, found, SERVERS_ARE_FINE.format(servers=", ".join(servers)))


async def _problem(http: aiohttp.ClientSession, server: str, headers: dict[str, str]) -> tuple[str, str] | None:
    """Return what is wrong with a server and the remedy. A redirect is not followed: it would carry the credentials."""
    try:
        url = LOOK.format(server=server)
        async with http.get(url, headers=headers, allow_redirects=False, timeout=TIMEOUT) as response:
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return NO_ANSWER.format(server=server, problem=type(error).__name__), CORRECT_SERVER
    if status in (401, 403):
        return NOT_LET_IN.format(server=server, status=status), RENEW_TOKEN
    return None if status == 200 else (NOT_JENKINS.format(server=server, status=status), CORRECT_SERVER)
