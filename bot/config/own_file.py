"""The key `repository_file` of a repository: whether its own `.github/nightjar.yaml` is read."""

from __future__ import annotations

from bot.config.repository_keys import RepositoryKey

REPOSITORY_FILE: RepositoryKey[bool] = RepositoryKey(
    "repository_file",
    bool,
    default=True,
    description=(
        "Whether the bot reads `.github/nightjar.yaml` on the default branch, where the repository's "
        "maintainers set some of these keys."
    ),
    example=False,
    position=240,
)
