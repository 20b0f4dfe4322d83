"""The environment and Spark's properties set the options of each reader of S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from replctl import object_store
from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.object_store import (
    Account,
    S3Options,
    file_system,
    hadoop_properties,
    is_s3,
    s3_options,
)

_KEYS = {"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": "env secret"}
_TOKEN = {**_KEYS, "AWS_SESSION_TOKEN": "env token"}
_S3A = "spark.hadoop.fs.s3a."
_OWN_KEY = {f"{_S3A}bucket.b.access.key": "own", f"{_S3A}bucket.b.secret.key": "own secret"}
_NOBODY = Account()
_AMAZON = S3Options(None, None, False, _NOBODY)
_SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://b/t", True),
        ("S3A://b/t", True),
        ("s3n://b", True),
        ("/s3/t", False),
        ("s3", False),
        ("file:///s3://b", False),
        ("gs://b/t", False),
    ],
)
def test_which_locations_are_on_s3(location: str, expected: bool) -> None:
    assert is_s3(location) is expected


@pytest.mark.parametrize(
    ("environment", "chosen", "expected"),
    [
        ({}, {}, _AMAZON),
        ({"AWS_DEFAULT_REGION": "eu"}, {}, S3Options(None, "eu", False, _NOBODY)),
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, {}, S3Options(None, "a", False, _NOBODY)),
        (
            {"AWS_ENDPOINT_URL": "http://h:1"},
            {},
            S3Options("http://h:1", "us-east-1", True, _NOBODY),
        ),
        (
            {"AWS_ENDPOINT_URL": "http://h:1", "AWS_ENDPOINT_URL_S3": "https://s"},
            {f"{_S3A}path.style.access": "false"},
            S3Options("https://s", "us-east-1", False, _NOBODY),
        ),
        (
            {"AWS_ENDPOINT_URL": "http://h:1"},
            {f"{_S3A}bucket.b.endpoint": "own:2", f"{_S3A}bucket.c.endpoint": "other"},
            S3Options("https://own:2", "us-east-1", True, _NOBODY),
        ),
        (
            {},
            {f"{_S3A}endpoint": "h:1", f"{_S3A}connection.ssl.enabled": "false"},
            S3Options("http://h:1", None, False, _NOBODY),
        ),
        (_TOKEN, {}, S3Options(None, None, False, Account("env", "env secret", "env token"))),
        ({"AWS_SESSION_TOKEN": "left over"}, {}, _AMAZON),
        (_KEYS, _OWN_KEY, S3Options(None, None, False, Account("own", "own secret"))),
        (
            {},
            {f"{_S3A}bucket.b.aws.credentials.provider": "x.AnonymousAWSCredentialsProvider"},
            S3Options(None, None, False, Account(is_anonymous=True)),
        ),
        (
            {},
            {
                f"{_S3A}aws.credentials.provider": "x.auth.AssumedRoleCredentialProvider",
                f"{_S3A}assumed.role.arn": "arn:x",
            },
            S3Options(None, None, False, Account(role="arn:x")),
        ),
    ],
)
def test_options_of_a_bucket(
    environment: dict[str, str], chosen: dict[str, str], expected: S3Options
) -> None:
    assert s3_options("b", {"HOME": "/missing", **environment}, chosen) == expected


_PROVIDER = f"{_S3A}bucket.b.aws.credentials.provider"
_SDK = "software.amazon.awssdk.auth.credentials."
_HADOOP = "org.apache.hadoop.fs.s3a.auth."
_WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}
_CONTAINER = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://h"}
_ENVIRONMENT = f"{_SDK}EnvironmentVariableCredentialsProvider"
_INSTANCE = f"{_SDK}InstanceProfileCredentialsProvider"
_IAM = f"{_HADOOP}IAMInstanceCredentialsProvider"


@pytest.mark.parametrize(
    ("environment", "provider", "expected"),
    [
        ({}, _INSTANCE, _NOBODY),
        (_CONTAINER, _IAM, _NOBODY),
        (_WEB, f"{_SDK}WebIdentityTokenFileCredentialsProvider", _NOBODY),
        (
            _KEYS,
            f"{_SDK}ContainerCredentialsProvider, {_ENVIRONMENT}",
            Account("env", "env secret"),
        ),
        (_TOKEN, _ENVIRONMENT, Account("env", "env secret", "env token")),
        ({}, f"{_ENVIRONMENT},\n {_INSTANCE}", _NOBODY),
        (_TOKEN, f"{_SDK}DefaultCredentialsProvider", Account("env", "env secret", "env token")),
        (_KEYS, _INSTANCE, "would use the account of AWS_ACCESS_KEY_ID"),
        (_WEB, _IAM, "would use the account of AWS_WEB_IDENTITY_TOKEN_FILE"),
        (_CONTAINER, _INSTANCE, "would use the account of AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        ({"AWS_PROFILE": "two"}, _INSTANCE, 'would use the account of profile "two"'),
        (
            {**_WEB, "AWS_PROFILE": "two"},
            f"{_SDK}DefaultCredentialsProvider",
            'would use the account of profile "two"',
        ),
        ({}, "x.OwnProvider", "cannot find the account of this provider"),
        ({}, "com.amazonaws.auth.AnonymousAWSCredentials", Account(is_anonymous=True)),
        ({}, "com.amazonaws.auth.EC2ContainerCredentialsProviderWrapper", Account()),
        (_KEYS, f"x.OwnProvider,{_ENVIRONMENT}", "cannot find the account of this provider"),
    ],
)
def test_the_provider_of_credentials_decides(
    tmp_path: Path, environment: dict[str, str], provider: str, expected: Account | str
) -> None:
    keys = tmp_path / "credentials"
    keys.write_text("[two]\naws_access_key_id = k\naws_secret_access_key = s\n", "utf-8")
    environment = {
        "HOME": str(tmp_path),
        "AWS_SHARED_CREDENTIALS_FILE": str(keys),
        **environment,
    }
    chosen = {_PROVIDER: provider}
    if isinstance(expected, Account):
        assert s3_options("b", environment, chosen).account == expected
        return
    with pytest.raises(FeatureNotSupported) as refused:
        s3_options("b", environment, chosen)
    assert f'"{provider.split(",")[0]}" is not supported' in str(refused.value)
    assert expected in (refused.value.detail or "")


def test_no_provider_of_credentials_has_an_account() -> None:
    with pytest.raises(ObjectNotInPrerequisiteState, match="no provider of credentials in"):
        s3_options("b", _KEYS, {_PROVIDER: f"{_SDK}ContainerCredentialsProvider"})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"assumed.role.session.name": "n"}, None),
        ({"access.key": "own", "secret.key": "own secret"}, "not with those of"),
        ({"secret.key": "own secret"}, "not with those of"),
        ({"assumed.role.credentials.provider": "x"}, "fs.s3a.assumed.role.credentials.provider"),
        ({"assumed.role.sts.endpoint": "h"}, "does not use fs.s3a.assumed.role.sts.endpoint"),
        ({"assumed.role.policy": "{}"}, "does not use fs.s3a.assumed.role.policy"),
    ],
)
def test_a_role_is_assumed_by_the_account_of_the_environment_only(
    options: dict[str, str], expected: str | None
) -> None:
    chosen = {_PROVIDER: f"{_HADOOP}AssumedRoleCredentialProvider"}
    with pytest.raises(ObjectNotInPrerequisiteState, match=r"assumed\.role\.arn\" is not set"):
        s3_options("b", _TOKEN, chosen)
    options = {"assumed.role.arn": "arn:x", **options}
    chosen |= {f"{_S3A}bucket.b.{name}": value for name, value in options.items()}
    if expected is None:
        assert s3_options("b", _TOKEN, chosen).account == Account(role="arn:x")
        return
    with pytest.raises(FeatureNotSupported) as refused:
        s3_options("b", _TOKEN, chosen)
    assert expected in (refused.value.detail or "")


def test_a_key_of_a_bucket_is_not_combined_with_the_token_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert s3_options("b", _TOKEN, _OWN_KEY).account.session_token is None
    for name, value in _TOKEN.items():
        monkeypatch.setenv(name, value)
    found = hadoop_properties(_OWN_KEY)
    assert found["fs.s3a.session.token"] == "env token"
    assert found["fs.s3a.bucket.b.aws.credentials.provider"] == _SIMPLE


def test_properties_of_the_user_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu")
    assert hadoop_properties({})["fs.s3a.endpoint.region"] == "eu"
    chosen = {f"{_S3A}endpoint.region": "us", "spark.hadoop.fs.s3.impl": "x.Y"}
    found = hadoop_properties(chosen)
    assert "fs.s3a.endpoint.region" not in found
    assert "fs.s3.impl" not in found


def test_profiles(tmp_path: Path) -> None:
    keys, config = tmp_path / "credentials", tmp_path / "config"
    keys.write_text("[two]\naws_access_key_id = k\naws_secret_access_key = s%x\n", "utf-8")
    config.write_text(
        "[profile r]\nrole_arn = arn:r\nsource_profile = two\n[profile sso]\n", "utf-8"
    )
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(keys), "AWS_CONFIG_FILE": str(config)}
    role = Account(role="arn:r", role_source="two")

    def account(environment: dict[str, str], profile: str | None = None) -> Account:
        name = f"{_S3A}bucket.b.auth.profile.name"
        chosen = {} if profile is None else {name: profile}
        return s3_options("b", {**files, **environment}, chosen).account

    assert account(_TOKEN, "two") == Account("k", "s%x")
    assert account(_TOKEN, "r") == role
    assert account(_TOKEN).access_key == "env"
    assert account({"AWS_PROFILE": "r"}) == role
    assert account({"AWS_PROFILE": "two"}) == account({"AWS_PROFILE": "sso"}) == Account()
    assert account({**_TOKEN, "AWS_PROFILE": "r"}).access_key == "env"
    config.write_text(
        "[default]\nrole_arn = arn:d\nsource_profile = two\n[profile r]\nrole_arn = arn:r\n"
        "source_profile = two\n",
        "utf-8",
    )
    default = Account(role="arn:d", role_source="two")
    assert account({}) == account({"AWS_PROFILE": "default"}) == default
    assert account(_TOKEN, "default") == default
    config.write_text(f"{config.read_text('utf-8')}[profile default]\nrole_arn = arn:p\n", "utf-8")
    assert account({}) == Account(role="arn:p")
    with pytest.raises(ObjectNotInPrerequisiteState, match='profile "three" has no access key'):
        account({}, "three")
    keys.write_text("nonsense", "utf-8")
    assert account({"AWS_PROFILE": "r"}) == role


def test_properties_are_asked_for_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_chosen", object_store._chosen)
    asked = []

    def chosen() -> dict[str, str]:
        asked.append(1)
        return {f"{_S3A}endpoint": "http://h:1", f"{_S3A}endpoint.region": "r"}

    object_store.choose_properties(chosen)
    assert not asked
    file_system("s3://b/t")
    assert file_system("s3a://b/a%20b/")[1] == "b/a%20b"
    assert len(asked) == 1


def test_a_scheme_that_nobody_knows() -> None:
    with pytest.raises(OSError, match='no file system for "ftp:" is known'):
        file_system("ftp://h/t")
