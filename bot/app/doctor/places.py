"""Checks of the buckets of labs, and of Jenkins."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

import aiohttp

from bot.app.doctor.findings import Check, Finding, findings_of
from bot.app.doctor.texts import (
    BUCKETS_OK,
    CHECK_BUCKET,
    CHECK_JENKINS,
    FOLDER_OK,
    FREE_SPACE,
    JENKINS_OK,
    JENKINS_UNREACHABLE,
    LOGIN_REFUSED,
    MANY_OBJECTS,
    NO_BUCKETS,
    NO_CREDENTIALS,
    NO_JENKINS,
    NOT_JENKINS,
    QUEUE,
    QUEUES_OK,
    RENEW_TOKEN,
    SEE_BUCKET_GUIDE,
    SET_CREDENTIALS,
)
from bot.aws.bucket import Bucket, NoSpace
from bot.aws.client import explained, in_thread
from bot.aws.store_folder import StoreFolder, store_folder_of
from bot.core.errors import TryAgain, UserError
from bot.engine.database import Database
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.aws.client import Aws
    from bot.config import Config
    from bot.config.environment import Settings

TIMEOUT = aiohttp.ClientTimeout(total=15, sock_connect=5)
MANY = 10_000
"""The number of objects from which a queue is advised."""
FRONT_PAGE = "{server}/api/json?tree=mode"


async def check_buckets(config: Config, aws: Aws, database_url: str) -> list[Finding]:
    """List one key of each bucket in app.yaml, and read each queue; advise a queue for buckets with many objects.

    Without a bucket, check the disk of the folder beside the SQLite database.
    """
    results = [results for keys in config.configured.entries.values() if (results := keys.of(LAB_RESULTS)) is not None]
    places = {(one.bucket, one.prefix) for one in results if one.bucket}
    queues = sorted({one.queue for one in results if one.queue})
    without_queue = {(one.bucket, one.prefix) for one in results if one.bucket and one.queue is None}
    crowded: set[str] = set()

    async def check_place(name: str, prefix: str) -> None:
        bucket = Bucket(aws, name)
        await bucket.check(prefix)
        if (name, prefix) in without_queue and await bucket.has_many(prefix, MANY):
            crowded.add(name)

    checks = [
        *(check_place(name, prefix) for name, prefix in sorted(places)),
        *(in_thread(partial(_read_queue, aws, queue)) for queue in queues),
    ]
    problems = []
    if has_folder := any(one.bucket is None for one in results):
        try:
            StoreFolder(store_folder_of(Database(database_url).name)).check_space(0)
        except (UserError, NoSpace) as error:
            problems.append((str(error), FREE_SPACE))
    for check in checks:
        try:
            await check
        except UserError as error:
            problems.append((str(error), SEE_BUCKET_GUIDE))
        except TryAgain as error:
            problems.append((str(error), CHECK_BUCKET))
    names = ", ".join(sorted({name for name, _ in places}))
    fine = BUCKETS_OK.format(names=names) if places else NO_BUCKETS
    if has_folder:
        fine = f"{fine}; {FOLDER_OK}" if places else FOLDER_OK
    also = QUEUES_OK.format(queues=", ".join(queues)) if queues else ""
    advice = MANY_OBJECTS.format(names=", ".join(sorted(crowded))) if crowded else ""
    return findings_of(Check.BUCKET, problems, fine + also + advice)


def _read_queue(aws: Aws, queue: str) -> None:
    """Receive a message, and leave it visible for the worker."""
    with explained(QUEUE.format(queue=queue)):
        aws.sqs(queue).receive_message(QueueUrl=queue, WaitTimeSeconds=0, VisibilityTimeout=0, MaxNumberOfMessages=1)


async def check_jenkins(config: Config, settings: Settings, http: aiohttp.ClientSession) -> list[Finding]:
    """Ask each Jenkins server of app.yaml for its front page, as the user that starts jobs."""
    servers = sorted({server.url for keys in config.configured.entries.values() for server in keys.jenkins})
    if not servers:
        return [Finding(Check.JENKINS, NO_JENKINS)]
    if settings.jenkins_user is None or settings.jenkins_token is None:
        return [Finding(Check.JENKINS, NO_CREDENTIALS, SET_CREDENTIALS)]
    secret = f"{settings.jenkins_user}:{settings.jenkins_token.get_secret_value()}"
    headers = {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
    found = [problem for server in servers if (problem := await _problem(http, server, headers)) is not None]
    return findings_of(Check.JENKINS, found, JENKINS_OK.format(servers=", ".join(servers)))


async def _problem(http: aiohttp.ClientSession, server: str, headers: dict[str, str]) -> tuple[str, str] | None:
    """Return the problem of a server and its remedy. Redirects are not followed: they would get the credentials."""
    try:
        url = FRONT_PAGE.format(server=server)
        async with http.get(url, headers=headers, allow_redirects=False, timeout=TIMEOUT) as response:
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return JENKINS_UNREACHABLE.format(server=server, problem=type(error).__name__), CHECK_JENKINS
    if status in (401, 403):
        return LOGIN_REFUSED.format(server=server, status=status), RENEW_TOKEN
    return None if status == 200 else (NOT_JENKINS.format(server=server, status=status), CHECK_JENKINS)
