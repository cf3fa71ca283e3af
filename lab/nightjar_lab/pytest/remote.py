"""Find the GitHub repository of a working copy, by environment variables or git's configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

SERVER = "https://github.com"
SECONDS = 5.0
PART = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def page_of_repository(folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Return the address of the repository's page; "" if it is not known.

    NIGHTJAR_REPOSITORY, or GitHub Actions' GITHUB_REPOSITORY, is OWNER/NAME; else git's `upstream` or `origin` says it.
    """
    server = environment.get("GITHUB_SERVER_URL") or SERVER
    for name in ("NIGHTJAR_REPOSITORY", "GITHUB_REPOSITORY"):
        if is_repository(environment.get(name, "")) and server.startswith("https://"):
            return f"{server.rstrip('/')}/{environment[name]}"
    for remote in ("upstream", "origin"):
        page = page_of_remote(_git(folder, "remote", "get-url", remote))
        if page:
            return page
    return ""


def is_repository(name: str) -> bool:
    """Say whether a text is OWNER/NAME."""
    parts = name.split("/")
    return len(parts) == 2 and all(
        part and len(part) <= 100 and set(part) <= PART and set(part) != {"."} for part in parts
    )


def page_of_remote(url: str) -> str:
    """Return the page of a remote's repository, without credentials in its address; "" if it has no page."""
    if "://" not in url:  # git@github.com:octocat/compiler.git
        place, colon, path = url.partition(":")
        host = place.rpartition("@")[2] if colon else ""
    else:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme not in ("https", "http", "ssh", "git"):
            return ""
    path = path.strip("/")
    name = path[:-4] if path.endswith(".git") else path
    return f"https://{host}/{name}" if host and set(host) <= PART and is_repository(name) else ""


def _git(folder: Path, *arguments: str) -> str:
    try:
        completed = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607  # the developer's own
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return completed.stdout.strip() if completed.returncode == 0 else ""
