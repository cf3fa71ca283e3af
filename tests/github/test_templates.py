"""URI templates are expanded as gidgethub does."""

from __future__ import annotations

import pytest
from gidgethub import sansio

from bot.github.client import UrlVars, expanded

BASES = ["https://api.github.com", "https://github.example.org/api/v3", "https://github.example.org/api/v3/"]
CASES: list[tuple[str, UrlVars]] = [
    ("/app", None),
    ("app/hook", {}),
    ("/repos/{+repo}/issues/{number}/comments{?since,per_page}", {"repo": "octocat/compiler", "number": "7"}),
    ("/repos/{+repo}/commits/{sha}/check-runs{?check_name}", {"repo": "a/b", "sha": "c d/é", "check_name": "x&y"}),
    ("/repos/{+repo}/git/ref/{+ref}", {"repo": "a/b", "ref": "heads/{odd} name"}),
    ("/search/issues?q={q}", {"q": "repo:a/b"}),
    ("https://uploads.example.org/a/b{?name}", {"name": "c"}),
    ("https://api.github.com/repositories/1/issues?page=2", None),
]


@pytest.mark.parametrize("base_url", BASES)
@pytest.mark.parametrize(("template", "url_vars"), CASES)
def test_a_template_becomes_the_address_that_gidgethub_makes(template: str, url_vars: UrlVars, base_url: str) -> None:
    uri, address = expanded(template, url_vars), sansio.format_url(template, url_vars, base_url=base_url)
    assert address == (base_url.removesuffix("/") + uri if uri.startswith("/") else uri)
