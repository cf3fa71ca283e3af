"""Ask Docker Hub which images and tags exist. No credentials are sent.

https://docs.docker.com/reference/api/hub/latest/#tag/repositories
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.core.errors import PayloadError
from bot.core.events import Payload
from bot.core.web_json import Reader
from handlers.docker_update.config import HUB
from handlers.docker_update.images import BUILT

TAG = "{url}/v2/repositories/{name}/tags/{tag}"
TAGS = "{url}/v2/repositories/{name}/tags?page_size=100&page={page}"
MOST_PAGES = 3
"""The most pages of tags that are searched; Docker Hub lists the newest tags first."""


@dataclass(frozen=True, slots=True)
class DockerHub:
    """A registry with Docker Hub's API, at an address without a slash at its end.

    Names are `namespace/name` and tags as `handlers.docker_update.images` reads them, so that they need no quoting. All
    methods raise what `Reader.json` raises: only 404 means that an image or tag does not exist.
    """

    reader: Reader
    url: str = HUB

    async def has(self, name: str, tag: str) -> bool:
        """Say whether an image has a tag."""
        # TVM's script treated every HTTP error, even a rate limit (429), as a missing image.
        return await self.reader.json(TAG.format(url=self.url, name=name, tag=tag)) is not None

    async def tags(self, name: str) -> Mapping[str, float]:
        """Return the tags that builds gave an image, with the time of the last push in seconds since 1970.

        Reads pages until one has such tags. Returns none if the image does not exist.
        """
        for page in range(1, MOST_PAGES + 1):
            answer = await self.reader.json(TAGS.format(url=self.url, name=name, page=page))
            if answer is None:
                break
            listed = Payload(answer, "tags")
            pushed_at = {tag.text("name"): _push_time(tag) for tag in listed.items("results")}
            built = {tag: moment for tag, moment in pushed_at.items() if moment is not None and BUILT.fullmatch(tag)}
            if built or not listed.has("next"):
                return built
        return {}


def _push_time(tag: Payload) -> float | None:
    try:
        return datetime.fromisoformat(tag.string("last_updated")).timestamp()
    except (PayloadError, ValueError):
        return None
