"""Secrets and addresses from environment variables; everything else is in app.yaml.

Errors, reprs and logs never repeat a value: they name the variable and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self, get_args

import psycopg
from nightjar_formats.items import first_of
from psycopg.conninfo import conninfo_to_dict
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from bot.config.private_key import pem_of, rsa_key
from bot.config.texts import (
    FILE_IS_EMPTY,
    FILE_IS_MISSING,
    FILE_IS_UNREADABLE,
    JENKINS_PAIR,
    KEY_FILE_MISSING,
    KEY_FILE_UNREADABLE,
    MALFORMED,
    NO_PRIVATE_KEY,
    NO_SUCH_PATH,
    NOT_A_DATABASE,
    NOT_A_PRIVATE_KEY,
    NOT_IN_MEMORY,
    NOT_SET,
    SECRET_FILE,
    SECRET_TWICE,
    SHORT_SECRET,
    SHORT_SESSION_SECRET,
    SIGN_IN_TRIO,
    TWO_PRIVATE_KEYS,
)
from bot.core.errors import SettingsError
from bot.core.parts import PartKey
from bot.core.urls import encrypted_url, http_url

SHORTEST_WEBHOOK_SECRET = 16
"""Characters; shorter secrets can be guessed by brute force."""
SHORTEST_SESSION_SECRET = 32
"""Characters; whoever guesses it can forge sign-ins."""
LARGEST_KEY_FILE = 64 * 1024
"""Bytes; an RSA key of 16384 bits takes 13 KiB."""


def _pem(text: str) -> str:
    pem = pem_of(text)
    if rsa_key(pem) is None:
        raise ValueError(NOT_A_PRIVATE_KEY)
    return pem


def _key_in_file(path: str) -> str:
    return _pem(_content(path, KEY_FILE_MISSING, KEY_FILE_UNREADABLE))


def _content(path: str, missing: str, unreadable: str) -> str:
    """Return the text of a file with a secret. Raises `ValueError` with one of the texts."""
    try:
        with Path(path).open("rb") as file:
            return file.read(LARGEST_KEY_FILE).decode("utf-8", "replace")
    except FileNotFoundError:
        raise ValueError(missing) from None
    # open() raises ValueError for a path with a NUL.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or NO_SUCH_PATH
        raise ValueError(unreadable.format(reason=reason.lower())) from None


def _webhook_secrets(text: object) -> object:
    secrets = tuple(text.split()) if isinstance(text, str) else text
    if isinstance(secrets, tuple) and any(len(str(_open(secret))) < SHORTEST_WEBHOOK_SECRET for secret in secrets):
        raise ValueError(SHORT_SECRET.format(least=SHORTEST_WEBHOOK_SECRET))
    return secrets


def _database_url(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    scheme, _, rest = text.partition("://")
    if scheme == "sqlite":
        path = rest.removeprefix("/")
        if path in ("", ":memory:"):
            raise ValueError(NOT_IN_MEMORY)
        if not rest.startswith("/") or "?" in path:
            raise ValueError(NOT_A_DATABASE)
        return url
    try:
        conninfo_to_dict(text)
    except (psycopg.ProgrammingError, ValueError):
        scheme = ""
    if scheme not in ("postgresql", "postgres"):
        raise ValueError(NOT_A_DATABASE)
    return url


def _encrypted(url: SecretStr | None) -> SecretStr | None:
    if url is not None:
        encrypted_url(url.get_secret_value())
    return url


def _open(secret: object) -> object:
    return secret.get_secret_value() if isinstance(secret, SecretStr) else secret


class Environment(BaseModel):
    """Settings from environment variables, whose names are the aliases of the fields. A blank one counts as not set."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read the variables of this class; a secret may be in a file, which the variable with `_FILE` names.

        Raises `SettingsError` with one line for each that is missing or malformed.
        """
        names = [field.alias for field in cls.model_fields.values() if field.alias]
        variables = {name: environ[name].strip() for name in names if environ.get(name, "").strip()}
        in_files, faults = _secrets_in_files(cls, environ)
        try:
            settings = cls.model_validate({**variables, **in_files})
        except ValidationError as error:
            problems = [
                _problem(cls, str(detail["loc"][0]), detail["type"], detail["msg"])
                for detail in error.errors()
                if _alias(cls, str(detail["loc"][0])) not in faults
            ]
        else:
            if not faults:
                return settings
            problems = []
        raise SettingsError(
            [*faults.values(), *problems]
        )  # raise outside the handler, so that no traceback shows the values that pydantic got

    def secrets(self) -> tuple[str, ...]:
        """Return every secret value, for the redactor of logs."""
        secrets: list[str] = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            secrets += [item.get_secret_value() for item in _each(value) if isinstance(item, SecretStr)]
        return tuple(secrets)


def _secrets_in_files(model: type[BaseModel], environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the secrets in files, and a problem for each file that cannot be used, by the names of the variables."""
    secrets: dict[str, str] = {}
    faults: dict[str, str] = {}
    own_names = {field.alias for field in model.model_fields.values()}
    for field in model.model_fields.values():
        name = field.alias or ""
        path = environ.get(f"{name}_FILE", "").strip()
        # The file of the private key is a variable of its own.
        if not path or f"{name}_FILE" in own_names or not is_secret(field.annotation):
            continue
        if environ.get(name, "").strip():
            faults[name] = SECRET_TWICE.format(name=name)
            continue
        try:
            secrets[name] = _content(path, FILE_IS_MISSING, FILE_IS_UNREADABLE).strip()
            fault = "" if secrets[name] else FILE_IS_EMPTY
        except ValueError as error:
            fault = str(error)
        if fault:
            faults[name] = f"{name}_FILE {SECRET_FILE.format(fault=fault, name=name)}"
    return secrets, faults


def is_secret(annotation: object) -> bool:
    """Return whether the values of a field's type are secret."""
    return annotation is SecretStr or any(map(is_secret, get_args(annotation)))


def _alias(model: type[BaseModel], name: str) -> str:
    return (model.model_fields[name].alias or name) if name in model.model_fields else name


def _each(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def _problem(model: type[BaseModel], name: str, kind: str, text: str) -> str:
    name, description = first_of(
        (f.alias or "", f.description) for n, f in model.model_fields.items() if name in (n, f.alias)
    )
    if kind == "value_error":
        # pydantic puts these words before the text of a ValueError.
        return f"{name} {text.removeprefix('Value error, ')}"
    return f"{name} {(NOT_SET if kind == 'missing' else MALFORMED).format(description=description)}"


class DatabaseSettings(Environment):
    """Settings of commands that need only the database."""

    database_url: Annotated[SecretStr, AfterValidator(_database_url)] = Field(
        default=SecretStr("sqlite:///nightjar.db"),
        alias="DATABASE_URL",
        description="the database: `sqlite:///PATH` for one server, `postgresql://…` for replicas",
    )

    def secrets(self) -> tuple[str, ...]:
        """Return every secret value; of the database's URL only the password."""
        url = self.database_url.get_secret_value()
        secrets = tuple(secret for secret in super().secrets() if secret != url)
        password = None if url.startswith("sqlite:") else conninfo_to_dict(url).get("password")
        return (*secrets, str(password)) if password else secrets


class Settings(DatabaseSettings):
    """Settings of the server and the worker."""

    # GitHub prefers the client ID:
    # https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
    app_id: Annotated[str, StringConstraints(pattern=r"^(?:[1-9][0-9]{0,17}|Iv[0-9A-Za-z.]{8,40})$")] = Field(
        alias="GITHUB_APP_ID",
        description="the App's ID, a number (or its client ID), from the App's page on GitHub",
    )
    key_from_file: Annotated[SecretStr | None, BeforeValidator(_key_in_file)] = Field(
        default=None,
        alias="GITHUB_PRIVATE_KEY_FILE",
        description="a file with the App's private key, instead of `GITHUB_PRIVATE_KEY`; one of them is needed",
    )
    private_key: SecretStr = Field(
        default=SecretStr(""),
        alias="GITHUB_PRIVATE_KEY",
        validate_default=True,
        description=(
            "the App's private key, the text of the .pem file, or that file in base64; its line ends may be written "
            "as `\\n`"
        ),
    )
    webhook_secrets: Annotated[tuple[SecretStr, ...], BeforeValidator(_webhook_secrets)] = Field(
        alias="GITHUB_WEBHOOK_SECRET",
        min_length=1,
        description=(
            f"the App's webhook secret, at least {SHORTEST_WEBHOOK_SECRET} characters; several, separated "
            "by spaces, during rotation"
        ),
    )
    api_url: Annotated[str, AfterValidator(http_url)] = Field(
        default="https://api.github.com",
        alias="GITHUB_API_URL",
        description="GitHub's REST API; for GitHub Enterprise Server `https://HOST/api/v3`",
    )
    jenkins_user: str | None = Field(
        default=None,
        alias="JENKINS_USER",
        description="the user who starts jobs on the Jenkins servers in app.yaml",
    )
    jenkins_token: SecretStr | None = Field(
        default=None,
        alias="JENKINS_TOKEN",
        validate_default=True,
        description="that user's API token",
    )

    discord_webhook_url: Annotated[SecretStr | None, AfterValidator(_encrypted)] = Field(
        default=None,
        alias="DISCORD_WEBHOOK_URL",
        description="the Discord webhook for `to: [discord]`; a secret",
    )
    slack_webhook_url: Annotated[SecretStr | None, AfterValidator(_encrypted)] = Field(
        default=None,
        alias="SLACK_WEBHOOK_URL",
        description="the Slack webhook for `to: [slack]`; a secret",
    )

    client_id: str | None = Field(
        default=None,
        alias="GITHUB_CLIENT_ID",
        description="the App's client ID, for sign-in on the pages; without it only public pages are served",
    )
    client_secret: SecretStr | None = Field(
        default=None,
        alias="GITHUB_CLIENT_SECRET",
        description="a client secret of the App, from the App's page on GitHub",
    )
    session_secret: SecretStr | None = Field(
        default=None,
        alias="SESSION_SECRET",
        validate_default=True,
        description=(
            f"the key that encrypts sessions: at least {SHORTEST_SESSION_SECRET} random characters, the same in all "
            "replicas. A new one signs everybody out"
        ),
    )

    @property
    def github_url(self) -> str:
        """The address of GitHub's own pages, without a slash at the end: https://github.com, or https://HOST."""
        url = self.api_url.rstrip("/")
        # Enterprise Cloud with data residency is at https://NAME.ghe.com, and its API at https://api.NAME.ghe.com.
        if url == "https://api.github.com" or (url.startswith("https://api.") and url.endswith(".ghe.com")):
            return url.replace("//api.", "//", 1)
        return url.removesuffix("/api/v3")

    @field_validator("private_key", mode="before")
    @classmethod
    def _one_key(cls, value: object, info: ValidationInfo) -> object:
        text = _open(value)
        if "key_from_file" not in info.data:
            return value  # the error of the file is reported already
        from_file = info.data["key_from_file"]
        if text and from_file:
            raise ValueError(TWO_PRIVATE_KEYS)
        if not text and not from_file:
            raise ValueError(NO_PRIVATE_KEY)
        return from_file or _pem(str(text))

    @field_validator("session_secret")
    @classmethod
    def _all_or_none(cls, secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        are_missing = {info.data.get("client_id") is None, info.data.get("client_secret") is None, secret is None}
        if len(are_missing) > 1:
            raise ValueError(SIGN_IN_TRIO)
        if secret is not None and len(secret.get_secret_value()) < SHORTEST_SESSION_SECRET:
            raise ValueError(SHORT_SESSION_SECRET.format(least=SHORTEST_SESSION_SECRET))
        return secret

    @field_validator("jenkins_token")
    @classmethod
    def _both_or_neither(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if (token is None) != (info.data["jenkins_user"] is None):
            raise ValueError(JENKINS_PAIR)
        return token


SETTINGS = PartKey[Settings]("settings")
