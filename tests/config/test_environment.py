"""The errors about the environment that an operator reads, which never contain a value."""

import traceback
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.config.environment import DatabaseSettings, Environment, Settings
from bot.core.errors import SettingsError
from bot.core.urls import NO_QUERY, NOT_ENCRYPTED

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = RSA.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
LOCKED = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"sesame-key")).decode()
OTHER_KIND = (
    ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
)
GOOD = {"GITHUB_APP_ID": "12345", "GITHUB_PRIVATE_KEY": PEM, "GITHUB_WEBHOOK_SECRET": "sesame-sesame-01"}

NOT_A_KEY = (
    "is not an RSA private key in PEM form; it must be the whole .pem file from GitHub, "
    "from -----BEGIN to END-----, without a passphrase"
)
SHORT = (
    "GITHUB_WEBHOOK_SECRET has a secret of fewer than 16 characters; choose a longer one, and enter it on the App's "
    "page on GitHub too (separate several secrets by spaces)"
)
DATABASE = (
    "DATABASE_URL must be sqlite:///PATH or postgresql://…, as in sqlite:///nightjar.db or "
    "postgresql://db.example.org/nightjar"
)
APP_ID = (
    "GITHUB_APP_ID is malformed; it must be the App's ID, a number (or its client ID), from the App's page on GitHub"
)
MEMORY = "DATABASE_URL must name a file: a database in memory is lost when the server ends"
JENKINS = "JENKINS_TOKEN and JENKINS_USER belong together; set both or neither"


def problems(environ: dict[str, str], settings: type[Environment] = Settings) -> tuple[str, ...]:
    try:
        settings.from_environment(environ)
    except SettingsError as error:
        return tuple(str(error).splitlines())
    return ()


def test_the_minimum_works_with_default_paths() -> None:
    settings = Settings.from_environment(GOOD)
    assert settings.app_id == "12345"
    assert settings.private_key.get_secret_value() == PEM
    assert [secret.get_secret_value() for secret in settings.webhook_secrets] == ["sesame-sesame-01"]
    assert settings.api_url == "https://api.github.com"
    assert settings.database_url.get_secret_value() == "sqlite:///nightjar.db"
    assert (settings.jenkins_user, settings.jenkins_token) == (None, None)


def test_all_missing_variables_are_reported_together_one_line_each() -> None:
    assert problems({"GITHUB_APP_ID": "  ", "UNRELATED": "x"}) == (
        "GITHUB_APP_ID is not set; it must be the App's ID, a number (or its client ID), from the App's page on GitHub",
        "GITHUB_PRIVATE_KEY is not set, and neither is GITHUB_PRIVATE_KEY_FILE; "
        "set one of them to the App's private key",
        "GITHUB_WEBHOOK_SECRET is not set; it must be the App's webhook secret, at least 16 characters; "
        "several, separated by spaces, during rotation",
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GITHUB_APP_ID", "sesame", APP_ID),
        ("GITHUB_APP_ID", "-5", APP_ID),
        ("GITHUB_APP_ID", "012", APP_ID),
        ("GITHUB_PRIVATE_KEY", "sesame", f"GITHUB_PRIVATE_KEY {NOT_A_KEY}"),
        pytest.param("GITHUB_PRIVATE_KEY", PEM[:200], f"GITHUB_PRIVATE_KEY {NOT_A_KEY}", id="the beginning of a key"),
        pytest.param("GITHUB_PRIVATE_KEY", LOCKED, f"GITHUB_PRIVATE_KEY {NOT_A_KEY}", id="a key with a passphrase"),
        pytest.param("GITHUB_PRIVATE_KEY", OTHER_KIND, f"GITHUB_PRIVATE_KEY {NOT_A_KEY}", id="a key of another kind"),
        ("GITHUB_PRIVATE_KEY", "sesame\udcff", f"GITHUB_PRIVATE_KEY {NOT_A_KEY}"),
        ("GITHUB_WEBHOOK_SECRET", "sesame", SHORT),
        ("GITHUB_WEBHOOK_SECRET", "sesame-sesame-01 sesame", SHORT),
        (
            "GITHUB_API_URL",
            "sesame",
            "GITHUB_API_URL must be a web address that starts with https:// or http:// and names a host",
        ),
        ("GITHUB_API_URL", "https://o:sesame@x.org", "GITHUB_API_URL must not contain a user name or password"),
        ("DATABASE_URL", "mysql://octocat:sesame@localhost/x", DATABASE),
        ("DATABASE_URL", "postgresql+psycopg://octocat:sesame@localhost/x", DATABASE),
        ("DATABASE_URL", "postgresql://octocat:sesame%zz@localhost", DATABASE),
        ("DATABASE_URL", "sqlite://sesame.db", DATABASE),
        ("DATABASE_URL", "sesame", DATABASE),
        ("DATABASE_URL", "host=localhost password=sesame", DATABASE),
        ("DATABASE_URL", "sqlite://", MEMORY),
        ("DATABASE_URL", "sqlite:///:memory:", MEMORY),
        ("DISCORD_WEBHOOK_URL", "http://discord.com/api/webhooks/1/sesame", f"DISCORD_WEBHOOK_URL {NOT_ENCRYPTED}"),
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0?sesame", f"SLACK_WEBHOOK_URL {NO_QUERY}"),
        ("JENKINS_USER", "sesame", JENKINS),
        ("JENKINS_TOKEN", "sesame", JENKINS),
    ],
)
def test_a_malformed_variable_is_named_and_its_value_is_not_shown(name: str, value: str, expected: str) -> None:
    assert problems({**GOOD, name: value}) == (expected,)
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({**GOOD, name: value})
    shown = "".join(traceback.format_exception(caught.value))
    assert "sesame" not in shown
    assert caught.value.__context__ is None


def test_several_malformed_variables_are_reported_one_line_each() -> None:
    environ = {**GOOD, "GITHUB_APP_ID": "x", "GITHUB_WEBHOOK_SECRET": "x", "DATABASE_URL": "x", "JENKINS_USER": "x"}
    assert sorted(problems(environ)) == sorted([APP_ID, SHORT, DATABASE, JENKINS])


@pytest.mark.parametrize(
    "pem",
    [PEM, PEM.replace("\n", "\\n"), PEM.replace("\n", "\r\n"), f"\n  {PEM}\n\n"],
    ids=["as is", "\\n", "CRLF", "padded"],
)
def test_a_key_is_read_in_every_form_that_env_files_give_it(pem: str) -> None:
    key = Settings.from_environment({**GOOD, "GITHUB_PRIVATE_KEY": pem}).private_key.get_secret_value()
    assert key.replace("\r", "") == PEM


def test_a_key_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text(PEM)
    environ = {**GOOD, "GITHUB_PRIVATE_KEY": "", "GITHUB_PRIVATE_KEY_FILE": str(file)}
    assert Settings.from_environment(environ).private_key.get_secret_value() == PEM


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text(PEM)
    expected = "GITHUB_PRIVATE_KEY and GITHUB_PRIVATE_KEY_FILE are both set; remove one of them"
    assert problems({**GOOD, "GITHUB_PRIVATE_KEY_FILE": str(file)}) == (expected,)


def test_an_unusable_key_file_is_reported_with_its_variable(tmp_path: Path) -> None:
    without = {name: value for name, value in GOOD.items() if name != "GITHUB_PRIVATE_KEY"}
    path = "; it must be the path of the .pem file from GitHub"
    assert problems({**without, "GITHUB_PRIVATE_KEY_FILE": str(tmp_path / "no.pem")}) == (
        "GITHUB_PRIVATE_KEY_FILE names a file that does not exist" + path,
    )
    assert problems({**without, "GITHUB_PRIVATE_KEY_FILE": str(tmp_path)}) == (
        "GITHUB_PRIVATE_KEY_FILE names a file that cannot be read: is a directory" + path,
    )
    (tmp_path / "app.pem").write_bytes(b"\xff" * 100_000)
    assert problems({**without, "GITHUB_PRIVATE_KEY_FILE": str(tmp_path / "app.pem")}) == (
        f"GITHUB_PRIVATE_KEY_FILE {NOT_A_KEY}",
    )


def test_two_webhook_secrets_are_read_while_rotating() -> None:
    settings = Settings.from_environment({**GOOD, "GITHUB_WEBHOOK_SECRET": " sesame-sesame-01\n\tsésame-sesame-02 "})
    assert [s.get_secret_value() for s in settings.webhook_secrets] == ["sesame-sesame-01", "sésame-sesame-02"]


def test_an_enterprise_server_has_its_own_address() -> None:
    settings = Settings.from_environment({**GOOD, "GITHUB_API_URL": "https://github.example.org/api/v3/"})
    assert settings.api_url == "https://github.example.org/api/v3"


def test_commands_that_only_read_the_database_need_nothing_else() -> None:
    assert DatabaseSettings.from_environment({}).database_url.get_secret_value() == "sqlite:///nightjar.db"
    url = "postgresql://octocat:sesame@localhost:5432/nightjar"
    settings = DatabaseSettings.from_environment({"DATABASE_URL": url})
    assert settings.database_url.get_secret_value() == url
    assert settings.secrets() == ("sesame",)
    assert problems({"DATABASE_URL": "x"}, DatabaseSettings) == (DATABASE,)


def test_no_secret_is_in_any_text_of_the_settings() -> None:
    environ = {
        **GOOD,
        "DATABASE_URL": "postgresql://octocat:ses%20ame@localhost/nightjar",
        "JENKINS_USER": "hubot",
        "JENKINS_TOKEN": "sesame-jenkins",
        "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/sesame-discord",
        "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/sesame-slack",
    }
    settings = Settings.from_environment(environ)
    for text in (repr(settings), str(settings), settings.model_dump_json(), f"{settings!r}"):
        assert not any(secret in text for secret in settings.secrets())
        assert "ses%20ame" not in text
    channels = {environ["DISCORD_WEBHOOK_URL"], environ["SLACK_WEBHOOK_URL"]}
    assert set(settings.secrets()) == {PEM, "sesame-sesame-01", "ses ame", "sesame-jenkins", *channels}


def test_settings_created_by_name_are_checked_too() -> None:
    settings = Settings(app_id="1", private_key=SecretStr(PEM), webhook_secrets=(SecretStr("s" * 16),))
    assert settings.private_key.get_secret_value() == PEM
    with pytest.raises(ValueError, match="fewer than 16"):
        Settings(app_id="1", private_key=SecretStr(PEM), webhook_secrets=(SecretStr("short"),))


@pytest.mark.no_cover
@hypothesis_settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([field.alias or "" for field in Settings.model_fields.values()]),
        st.text(st.characters(exclude_characters="\0"), min_size=1).map(lambda text: f"sesame{text}"),
    )
)
def test_any_environment_gives_settings_or_lines_without_values(environ: dict[str, str]) -> None:
    for problem in problems(environ):
        assert problem.split()[0].isupper()
        assert problem.isprintable()
        assert "sesame" not in problem


SIGN_IN = {"GITHUB_CLIENT_ID": "Iv23lioctocat", "GITHUB_CLIENT_SECRET": "sesame", "SESSION_SECRET": "s" * 32}
TRIO = "SESSION_SECRET belongs together with GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET; set all three or none"


@pytest.mark.parametrize("missing", list(SIGN_IN))
def test_sign_in_needs_all_three_of_its_variables(missing: str) -> None:
    assert problems({**GOOD, **SIGN_IN}) == ()
    assert problems({**GOOD, **{name: value for name, value in SIGN_IN.items() if name != missing}}) == (TRIO,)


def test_a_short_session_secret_is_refused() -> None:
    (problem,) = problems({**GOOD, **SIGN_IN, "SESSION_SECRET": "s" * 31})
    assert "has fewer than 32 characters" in problem


@pytest.mark.parametrize(
    ("api", "pages"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.octo.ghe.com", "https://octo.ghe.com"),
        ("https://api.example.com/api/v3", "https://api.example.com"),
        ("https://github.example.com/api/v3/", "https://github.example.com"),
    ],
)
def test_the_web_address_of_a_github_is_derived_from_its_api(api: str, pages: str) -> None:
    assert Settings.from_environment({**GOOD, "GITHUB_API_URL": api}).github_url == pages


SECRETS = {
    "GITHUB_WEBHOOK_SECRET": "sesame-sesame-02",
    "DATABASE_URL": "postgresql://octocat:sesame@localhost/nightjar",
    "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/sesame",
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T0/B0/sesame",
    "JENKINS_TOKEN": "sesame",
    "GITHUB_CLIENT_SECRET": "sesame",
    "SESSION_SECRET": "sesame" * 6,
    "GITHUB_PRIVATE_KEY": PEM,
}


def test_every_secret_may_be_in_a_file(tmp_path: Path) -> None:
    """As Docker, Kubernetes and systemd hand secrets over."""
    environ = {"GITHUB_APP_ID": "12345", "JENKINS_USER": "octocat", "GITHUB_CLIENT_ID": "Iv1.1234567890"}
    given = Settings.from_environment({**environ, **SECRETS})
    fields = {field.alias: name for name, field in Settings.model_fields.items()}
    assert {name for name in fields if "Secret" in repr(Settings.model_fields[fields[name]].annotation)} == {
        *SECRETS,
        "GITHUB_PRIVATE_KEY_FILE",
    }
    for name, secret in SECRETS.items():
        (tmp_path / name).write_text(f"{secret}\n")
        environ[f"{name}_FILE"] = str(tmp_path / name)
    from_files = Settings.from_environment(environ)
    assert from_files.secrets() == (from_files.key_from_file.get_secret_value(), *given.secrets())  # type: ignore[union-attr]


def test_an_unusable_file_of_a_secret_is_reported_with_its_variable(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    environ = {
        **GOOD,
        "GITHUB_WEBHOOK_SECRET": "",
        "GITHUB_WEBHOOK_SECRET_FILE": str(tmp_path / "sesame"),
        "JENKINS_USER": "octocat",
        "JENKINS_TOKEN_FILE": str(tmp_path / "empty"),
        "SLACK_WEBHOOK_URL_FILE": str(tmp_path),
        "DATABASE_URL": "sqlite:///nightjar.db",
        "DATABASE_URL_FILE": str(tmp_path / "empty"),
    }
    assert sorted(problems(environ)) == [
        "DATABASE_URL and DATABASE_URL_FILE are both set; remove one of them",
        "GITHUB_WEBHOOK_SECRET_FILE names a file that does not exist; it must be the path of a file with the value of "
        "GITHUB_WEBHOOK_SECRET",
        "JENKINS_TOKEN_FILE names an empty file; it must be the path of a file with the value of JENKINS_TOKEN",
        "SLACK_WEBHOOK_URL_FILE names a file that cannot be read: is a directory; it must be the path of a file with "
        "the value of SLACK_WEBHOOK_URL",
    ]
