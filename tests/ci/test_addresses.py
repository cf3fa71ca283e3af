"""Which job the link of a status names, and which links are ignored: anybody who can post a status writes them."""

import pytest

from bot.ci.addresses import JenkinsBuildLink, parse_build, server_of

SERVER = "https://ci.example.org"
SERVERS = (SERVER, "https://ci.example.org:8443/jenkins", "http://127.0.0.1:8081")


@pytest.mark.parametrize(
    ("link", "job", "number"),
    [
        (f"{SERVER}/job/compiler/job/PR-12/7/display/redirect", "/job/compiler/job/PR-12", 7),
        (f"{SERVER}/job/compiler/job/PR-12/7", "/job/compiler/job/PR-12", 7),
        (f"{SERVER}/job/compiler/job/PR-12/7/", "/job/compiler/job/PR-12", 7),
        (f"{SERVER}/job/compiler-gpu/job/PR-12/7/console?x=1#top", "/job/compiler-gpu/job/PR-12", 7),
        (f"{SERVER}/view/all/job/a/job/b/job/PR-12/10/", "/job/a/job/b/job/PR-12", 10),
        ("https://CI.example.org:443/job/a/job/PR-12/1/", "/job/a/job/PR-12", 1),
        (f"{SERVER}/job/a/job/feature%252Ffast/3/", "/job/a/job/feature%252Ffast", 3),
    ],
)
def test_a_link_to_a_build_names_its_job(link: str, job: str, number: int) -> None:
    assert parse_build(link, SERVERS) == JenkinsBuildLink(SERVER, SERVER + job, number)


def test_a_server_below_a_path_is_found_by_that_path() -> None:
    link = "https://ci.example.org:8443/jenkins/job/a/job/PR-1/2/"
    assert parse_build(link, SERVERS) == JenkinsBuildLink(SERVERS[1], f"{SERVERS[1]}/job/a/job/PR-1", 2)


@pytest.mark.parametrize(
    "link",
    [
        "",
        "not a link",
        "/job/a/job/PR-12/7/",
        "https://other.example.org/job/a/job/PR-12/7/",
        "https://ci.example.org.other.example/job/a/job/PR-12/7/",
        "https://ci.example.org@other.example.org/job/a/job/PR-12/7/",
        "https://octocat:secret@ci.example.org/job/a/job/PR-12/7/",
        "http://ci.example.org/job/a/job/PR-12/7/",
        "ftp://ci.example.org/job/a/job/PR-12/7/",
        "https://ci.example.org:444/job/a/job/PR-12/7/",
        "https://ci.example.org:99999/job/a/job/PR-12/7/",
        "https://ci.example.org:8443/jenkins-old/job/a/job/PR-1/2/",
        "https://[::1/job/a/7",
    ],
)
def test_a_link_elsewhere_is_no_build_of_ours(link: str) -> None:
    assert server_of(link, SERVERS) is None
    assert parse_build(link, SERVERS) is None


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/job/a/job/PR-12/",
        "/job/a/job/PR-12/lastBuild/",
        "/job/PR-12",
        "/blue/organizations/jenkins/a/detail/PR-12/7/pipeline",
        "/elsewhere/job/a/job/PR-12/7/",
        "/job/../job/PR-12/7/",
        "/job/%2e%2e/job/PR-12/7/",
        "/job/%252e%252e/job/PR-12/7/",
        "/job/a%2F..%2Fb/job/PR-12/7/",
        "/job/a/job/PR-12\n/7/",
        "/job/a/job/PR%0A12/7/",
        "/job/a b/job/PR-12/7/",
        "/job/a\\b/job/PR-12/7/",
        "/job/a%5Cb/job/PR-12/7/",
        "/job//job/PR-12/7/",
        "/job/a/job/PR-12/7777777777/",
    ],
)
def test_a_link_that_is_no_plain_build_address_names_no_job(path: str) -> None:
    assert parse_build(SERVER + path, SERVERS) is None


@pytest.mark.parametrize(
    ("job", "is_own"),
    [
        ("/job/compiler/job/PR-12", True),
        ("/job/compiler/job/PR-12-head", True),
        ("/job/compiler/job/PR-12-merge", True),
        ("/job/compiler/job/PR-120", False),
        ("/job/compiler/job/PR-1", False),
        ("/job/PR-12/job/deploy", False),
        ("/job/deploy", False),
        ("/job/PR-12", False),
        ("/job/compiler/job/main", False),
        ("/job/compiler/job/fast", False),
    ],
)
def test_only_the_pull_requests_own_job_is_its_job(job: str, is_own: bool) -> None:
    build = parse_build(f"{SERVER}{job}/7/", SERVERS)
    assert build is not None
    assert build.is_job_of(12) is is_own


def test_a_job_has_its_readable_name() -> None:
    build = parse_build(f"{SERVER}/job/compiler/job/feature%252Ffast/7/", SERVERS)
    assert build is not None
    assert build.name == "compiler/feature/fast"
