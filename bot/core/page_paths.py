"""The paths of the bot's pages, for links on pages and on GitHub. No I/O.

The functions quote text from outside, so that each path is one address, whatever names a lab gives its tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus

PAGES_OF_A_REPOSITORY = "/r/{owner}/{repo}"
REPLACED = "replace"
"""The error handler for encoding: a lab's JSON may contain a lone surrogate, which UTF-8 cannot encode."""
HELP = "/help"
_IN_QUERIES = {number: quote_plus(chr(number)) for number in range(128)}


@lru_cache(4096)
def segment(text: str) -> str:
    """Return a text as one segment of an address's path."""
    return quote(text, safe="", errors=REPLACED)


def query(values: Mapping[str, object]) -> str:
    """Return the query of an address, with its question mark, without empty values."""
    parameters = [
        f"{_in_query(name)}={_in_query(str(item))}"
        for name, value in values.items()
        if value not in (None, "")
        for item in (value if isinstance(value, list | tuple) else (value,))
    ]
    return f"?{'&'.join(parameters)}" if parameters else ""


@lru_cache(1024)
def _in_query(text: str) -> str:
    # A page has hundreds of addresses, and `quote_plus` takes a tenth of the time to make a page.
    return text.translate(_IN_QUERIES) if text.isascii() else quote_plus(text, errors=REPLACED)


def view_path(repository: str, view: str = "", **filters: object) -> str:
    """Return a view of a repository, such as `compare` or `nightly`; without a name, its grid."""
    path = f"/r/{_repository(repository)}{f'/{view}' if view else ''}"
    return f"{path}{query(filters)}" if filters else path


def runs_path(repository: str, target: str) -> str:
    """Return what the pages of all runs of a target begin with; `target` is LAB/TARGET."""
    return view_path(repository, f"runs/{_target(target)}")


def path_of_run(runs: str, sha: str, run_id: str) -> str:
    """Return the page of a run of the target whose `runs_path` is given."""
    return f"{runs}/{segment(sha)}/{segment(run_id)}"


def run_path(repository: str, target: str, sha: str, run_id: str) -> str:
    """Return the page of a run; `target` is LAB/TARGET."""
    return path_of_run(runs_path(repository, target), sha, run_id)


def run_file_path(repository: str, target: str, sha: str, run_id: str, name: str) -> str:
    """Return the page of a run's log or another of its files; `target` is LAB/TARGET."""
    return f"{run_path(repository, target, sha, run_id)}/files/{segment(name)}"


def history_path(repository: str, test: str, target: str = "") -> str:
    """Return the page of a test, on all targets or on one, which is LAB/TARGET."""
    return view_path(repository, "tests", id=test, target=target)


def measurement_path(repository: str, test: str, name: str, target: str = "") -> str:
    """Return the page of what a test measures, on all targets or on one, which is LAB/TARGET."""
    return view_path(repository, "measurements/series", id=test, measurement=name, target=target)


def pull_path(repository: str, number: int) -> str:
    """Return the page of a pull request."""
    return view_path(repository, f"pulls/{number}")


def lab_path(repository: str, lab: str) -> str:
    """Return the page of a lab."""
    return view_path(repository, f"labs/{segment(lab)}")


def commit_path(repository: str, sha: str) -> str:
    """Return the page of a commit, with all its targets."""
    return view_path(repository, f"commits/{segment(sha)}")


def search_path(repository: str, search_id: str) -> str:
    """Return the page of a search for the commit that tests began to fail with."""
    return view_path(repository, f"searches/{segment(search_id)}")


def badge_path(repository: str, target: str) -> str:
    """Return the badge of a target, which is LAB/TARGET."""
    return view_path(repository, f"badge/{_target(target)}.svg")


def help_path(repository: str = "") -> str:
    """Return the page of all commands, or of those that are on in a repository."""
    return HELP + query({"repo": repository})


@lru_cache(1024)
def _repository(name: str) -> str:
    return quote(name)


@lru_cache(1024)
def _target(target: str) -> str:
    return "/".join(map(segment, target.split("/")))


PATHS = {
    "view_path": view_path,
    "run_path": run_path,
    "history_path": history_path,
    "measurement_path": measurement_path,
    "pull_path": pull_path,
    "lab_path": lab_path,
    "commit_path": commit_path,
    "search_path": search_path,
    "badge_path": badge_path,
    "help_path": help_path,
}
"""The functions that all templates can call."""
