"""The variables of the command: a list of those that it gets, and not of those that it does not."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_lab.command import ALLOWED, ALLOWED_PREFIXES, PASSED, PROXIES, clean_environment

ROOT = Path(__file__).parents[2]
SECRETS = """
    NIGHTJAR_LAB_TOKEN NIGHTJAR_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_WEB_IDENTITY_TOKEN_FILE GITHUB_TOKEN
    GH_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_RUNTIME_TOKEN GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STATE
    GITHUB_STEP_SUMMARY BUILDKITE_AGENT_ACCESS_TOKEN BUILDKITE_ENV_FILE CIRCLE_TOKEN CIRCLE_OIDC_TOKEN
    CIRCLE_OIDC_TOKEN_V2 SYSTEM_ACCESSTOKEN AZURE_CLIENT_SECRET AZURE_DEVOPS_EXT_PAT SYSTEM_OIDCREQUESTURI CI_JOB_TOKEN
    CI_JOB_JWT_V2 CI_REGISTRY_PASSWORD CI_REPOSITORY_URL GITLAB_TOKEN BITBUCKET_STEP_OIDC_TOKEN BITBUCKET_TOKEN
    BITBUCKET_APP_PASSWORD SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS DOCKER_HOST
    DOCKER_AUTH_CONFIG XDG_RUNTIME_DIR KUBECONFIG GOOGLE_APPLICATION_CREDENTIALS VAULT_TOKEN HF_TOKEN NPM_TOKEN
    TWINE_PASSWORD PIP_INDEX_URL UV_INDEX_URL CARGO_REGISTRY_TOKEN GIT_ASKPASS SSH_ASKPASS GIT_SSH_COMMAND
    NVIDIA_API_KEY GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS LD_PRELOAD BASH_ENV ENV JENKINS_AGENT_SECRET TRAVIS_TOKEN
    DRONE_NETRC_PASSWORD SSHPASS PGPASSWORD MY_SECRET
""".split()  # noqa: SIM905


def environment_of(variables: dict[str, str], passed: tuple[str, ...] | None = None) -> dict[str, str]:
    """Return what the command of an agent with these variables gets."""
    with patch.dict(os.environ, variables, clear=True):
        return clean_environment({"NIGHTJAR_SUITE": "operators"}, passed)


def test_the_command_gets_no_secret_of_any_ci_service() -> None:
    assert environment_of(dict.fromkeys(SECRETS, "x")) == {"NIGHTJAR_SUITE": "operators"}


@given(st.text(alphabet="ABCDEGKNOSTUY_", min_size=1, max_size=30))
def test_the_command_gets_no_variable_that_is_not_listed(name: str) -> None:
    listed = name in ALLOWED or name in PROXIES or name.startswith(ALLOWED_PREFIXES)
    assert (name in environment_of({name: "x"})) == listed


def test_no_listed_name_sounds_like_a_secret() -> None:
    words = ("TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "KEY", "SOCK", "JWT", "OIDC", "NETRC")
    assert [name for name in (*ALLOWED, *ALLOWED_PREFIXES) if any(word in name for word in words)] == []


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_is_passed_without_credentials_only(name: str) -> None:
    assert name in environment_of({name: "http://proxy.example.org:3128"})
    assert name not in environment_of({name: "http://octocat:secret@proxy.example.org:3128"})


def test_the_lab_names_further_variables_which_commands_inside_pass_on() -> None:
    variables = {"MODEL_FOLDER": "/models", "OTHER": "x"}
    passed = environment_of(variables, ("MODEL_FOLDER", "MISSING"))
    assert passed == {"MODEL_FOLDER": "/models", PASSED: "MODEL_FOLDER MISSING", "NIGHTJAR_SUITE": "operators"}
    assert environment_of({**passed, "OTHER": "x"}) == passed
    assert "MODEL_FOLDER" not in environment_of({**passed}, ())


def test_the_page_about_security_names_what_is_passed() -> None:
    page = (ROOT / "docs/labs-security.md").read_text(encoding="utf-8")
    assert [prefix for prefix in ALLOWED_PREFIXES if f"`{prefix}*`" not in page] == []
    assert PASSED in page
