"""Parse addresses of Jenkins builds: find the server and the job that the link of a commit status names.

A link is text from outside: anybody who may post a status writes it. So the bot calls a job only below an address that
app.yaml names, and only if it is the pull request's own job of a multibranch project. It ignores links to other jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from bot.core.patterns import Pattern

_PORTS = {"http": 80, "https": 443}
_SEGMENT = r"[A-Za-z0-9._~!$&'()*+,;=:@%-]+"
"""One segment of a path as RFC 3986 (section 3.3) writes it: no slash, no control character, no backslash."""
_PRINTED = Pattern(r"[!-~]+")
_BUILD = Pattern(rf"(?:/view/{_SEGMENT})*(?P<job>(?:/job/{_SEGMENT})+)/(?P<number>[0-9]{{1,9}})(?:/.*)?")


@dataclass(frozen=True, slots=True)
class JenkinsBuildLink:
    """One build of a job: `job_url` is below `server`, both without a slash at the end; `number` counts builds."""

    server: str
    job_url: str
    number: int

    @property
    def segments(self) -> tuple[str, ...]:
        """The folders and the job, as Jenkins calls them; a branch's slash is `%2F` to Jenkins as well."""
        path = self.job_url.removeprefix(self.server)
        return tuple(unquote(part) for part in path.split("/job/")[1:])

    @property
    def project(self) -> tuple[str, ...]:
        """The server, then the folders and the name of the multibranch project that has the job."""
        return (self.server, *self.segments[:-1])

    @property
    def name(self) -> str:
        """The job's full name, for people."""
        return "/".join(unquote(part) for part in self.segments)

    def is_job_of(self, number: int) -> bool:
        """Say whether it is the multibranch job of a pull request.

        Jenkins names them `PR-12`, or `PR-12-head` and `PR-12-merge` if it builds both. A job without a folder belongs
        to no multibranch project. The job of the branch that the pull request comes from is not its own: that branch
        may be `main`, whose job deploys.
        """
        if len(self.segments) < 2:
            return False
        names: Collection[str] = {f"PR-{number}", f"PR-{number}-head", f"PR-{number}-merge"}
        return self.segments[-1] in names


def parse_build(link: str, servers: Iterable[str]) -> JenkinsBuildLink | None:
    """Return the build that a link names, or None if it is no build on one of the servers of app.yaml.

    `https://ci.example.org/job/compiler/job/PR-12/7/console` is build 7 of the job `compiler/PR-12`.
    """
    server = server_of(link, servers)
    if server is None:
        return None
    path = urlsplit(link).path[len(urlsplit(server).path) :]
    match = _BUILD.fullmatch(path)
    if match is None or any(_leaves_folder(part) for part in match["job"].split("/")[1:]):
        return None
    return JenkinsBuildLink(server, f"{server}{match['job']}", int(match["number"]))


def server_of(link: str, servers: Iterable[str]) -> str | None:
    """Return the server of an address: the one with its scheme, host and port, and with the beginning of its path."""
    # urlsplit ignores line ends and tabs, so it would parse another address than the given one.
    if not _PRINTED.fullmatch(link):
        return None
    try:
        origin, path = _origin(link), urlsplit(link).path
    except ValueError:
        return None
    for server in servers:
        if origin == _origin(server) and path.startswith(f"{urlsplit(server).path}/"):
            return server
    return None


def _origin(address: str) -> tuple[str, str, int]:
    parts = urlsplit(address)
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None or parts.password is not None:
        raise ValueError("no plain web address")
    # The default port may be left out: https://www.rfc-editor.org/rfc/rfc3986#section-6.2.3
    return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]


def _leaves_folder(segment: str) -> bool:
    """Return whether a segment may lead to another folder, even if a server decodes it twice."""
    decoded = unquote(unquote(segment))
    return decoded in ("", ".", "..") or "/../" in f"/{decoded}/" or not decoded.isprintable() or "\\" in decoded
