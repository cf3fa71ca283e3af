"""Make the files that `nightjar-lab init` writes. Text that people enter is quoted for the language of the file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

ENV_FILE, SCRIPT = "nightjar-lab.env", "nightjar-lab.sh"
WORKFLOWS = {
    "github": ".github/workflows/nightjar-lab.yml",
    "gitlab": ".gitlab-ci.yml",
    "jenkins": "Jenkinsfile",
}

BUCKET_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""What the CI has to know for uploads to S3."""
TOKEN_SECRETS = ("NIGHTJAR_LAB_TOKEN",)
"""What it has to know for uploads through the bot."""
_REGION = {"AWS_DEFAULT_REGION": "us-west-2"}

_ENV_HEAD = """\
# Where this lab's results go. Secrets do not belong here: @SECRETS@.
"""

_SCRIPT = """\
#!/bin/sh
# Tests the nightly commit of $NIGHTJAR_REPOSITORY and uploads the results. Written by nightjar-lab init.
set -eu
cd "$(dirname "$0")"
set -a
. ./nightjar-lab.env
set +a
SHA=$(nightjar-lab nightly)

# Tests of the last night may have left programs for git in the checkout: it keeps only data, and git gets no secret.
git() {
    env -i PATH="$PATH" ${HOME:+"HOME=$HOME"} ${SSH_AUTH_SOCK:+"SSH_AUTH_SOCK=$SSH_AUTH_SOCK"} \
        ${GIT_SSL_CAINFO:+"GIT_SSL_CAINFO=$GIT_SSL_CAINFO"} ${SSL_CERT_FILE:+"SSL_CERT_FILE=$SSL_CERT_FILE"} \
        ${https_proxy:+"https_proxy=$https_proxy"} ${HTTPS_PROXY:+"HTTPS_PROXY=$HTTPS_PROXY"} \
        ${no_proxy:+"no_proxy=$no_proxy"} ${NO_PROXY:+"NO_PROXY=$NO_PROXY"} git "$@"
}
if [ -d source/.git ]; then
    find source/.git/ -mindepth 1 -maxdepth 1 ! -name objects ! -name index ! -name modules -exec rm -rf {} +
fi
git init --quiet --template= source
git -C source fetch --quiet --depth 1 "${NIGHTJAR_CLONE_URL:-https://github.com/$NIGHTJAR_REPOSITORY}" "$SHA"
git -C source checkout --quiet --force --detach "$SHA"
runs=$PWD/nightjar-runs
cd source
exec nightjar-lab run --sha "$SHA" --suite "$NIGHTJAR_SUITE" --folder "$runs" -- sh -c "$NIGHTJAR_TEST_COMMAND"
"""

_GITHUB = """\
# Tests the nightly commit on this lab's device. Written by nightjar-lab init; edit it freely.
name: Nightjar lab
on:
  schedule:
    - cron: "17 6 * * *"
  workflow_dispatch:
permissions:
  contents: read
concurrency: nightjar-lab
jobs:
  test:
    runs-on: self-hosted
    timeout-minutes: 720
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0
        with:
          persist-credentials: false
      - run: python3 -m venv .venv && .venv/bin/pip install --quiet @PACKAGE@ boto3
      - run: PATH="$PWD/.venv/bin:$PATH" sh ./nightjar-lab.sh
        env:
@VARIABLES@"""

_GITLAB = """\
# Tests the nightly commit on this lab's device. Written by nightjar-lab init; edit it freely.
# Masked variables of the project: @SECRETS@.
nightjar-lab:
  rules:
    - if: $CI_PIPELINE_SOURCE == "schedule"
    - if: $CI_PIPELINE_SOURCE == "web"
  resource_group: nightjar-lab
  timeout: 12h
  script:
    - python3 -m venv .venv && .venv/bin/pip install --quiet @PACKAGE@ boto3
    - PATH="$PWD/.venv/bin:$PATH" sh ./nightjar-lab.sh
"""

_JENKINS = """\
// Tests the nightly commit on this lab's device. Written by nightjar-lab init; edit it freely.
pipeline {
  agent any
  triggers { cron('17 6 * * *') }
  options { disableConcurrentBuilds(); timeout(time: 12, unit: 'HOURS') }
  environment {
@VARIABLES@  }
  stages {
    stage('Test') {
      steps {
        sh 'python3 -m venv .venv && .venv/bin/pip install --quiet @PACKAGE@ boto3'
        sh 'PATH="$PWD/.venv/bin:$PATH" sh ./nightjar-lab.sh'
      }
    }
  }
}
"""
_OF_CI = {"github": _GITHUB, "gitlab": _GITLAB, "jenkins": _JENKINS}
# How a CI writes a variable with a plain value, and one with a secret.
_PLAIN = {"github": "          {name}: {value}\n", "gitlab": "", "jenkins": "    {name} = '{value}'\n"}
_SECRET = {
    "github": "          {name}: ${{{{ secrets.{name} }}}}\n",
    "gitlab": "",
    "jenkins": "    {name} = credentials('{credential}')\n",
}


def secrets_of(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the secrets that a lab's CI needs: for a bucket, or for uploads through the bot."""
    return BUCKET_SECRETS if variables.get("NIGHTJAR_BUCKET") else TOKEN_SECRETS


def lab_files(ci: str, package: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the contents of the files for a CI by name; pip installs `package`, `variables` are those of the lab."""
    secrets = secrets_of(variables)
    plain = _REGION if secrets is BUCKET_SECRETS else {}
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in variables.items() if value]
    of_ci = [_PLAIN[ci].format(name=name, value=value) for name, value in plain.items()]
    of_ci += [_SECRET[ci].format(name=name, credential=_credential(name)) for name in secrets]
    parts = {"@PACKAGE@": package, "@VARIABLES@": "".join(of_ci), "@SECRETS@": ", ".join((*plain, *secrets))}
    workflow = _OF_CI[ci]
    for placeholder, text in parts.items():
        workflow = workflow.replace(placeholder, text)
    return {
        ENV_FILE: _ENV_HEAD.replace("@SECRETS@", ", ".join(secrets)) + "".join(lines),
        SCRIPT: _SCRIPT,
        WORKFLOWS[ci]: workflow,
    }


def _credential(name: str) -> str:
    """Return the ID of a secret among the credentials of Jenkins."""
    return f"nightjar-{name.lower().replace('_', '-')}".replace("nightjar-nightjar-", "nightjar-")
