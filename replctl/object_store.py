"""Give Spark, and replctl's own reads of Delta's logs, the same account for object storage.

The options come from the environment (`AWS_*`), and from the Spark properties of this process
(`spark.hadoop.fs.s3a.*`), which take precedence.  Both are converted to Hadoop's names.  An option
of one bucket (`fs.s3a.bucket.NAME.*`) takes precedence over an option of all buckets.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from pathlib import Path
from posixpath import normpath
from typing import Any

from replctl.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from replctl.process_environment import environment_with
from replctl.record import dataclass

#: Schemes of locations on S3, which all mean the same.
S3_SCHEMES = ("s3", "s3a", "s3n")
#: The class with which Spark accesses S3.
S3_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem"

_HADOOP = "spark.hadoop."
_S3A = "fs.s3a."
_BUCKET = "bucket."
_PROVIDER = "aws.credentials.provider"
_PACKAGE = "org.apache.hadoop.fs.s3a."
_FROM_OPTIONS = f"{_PACKAGE}TemporaryAWSCredentialsProvider,{_PACKAGE}SimpleAWSCredentialsProvider"
#: Providers of credentials: keys among the options first, then the sources that all AWS programs
#: use: environment, profiles and their roles, web identity, the machine.
_USUAL_PROVIDERS = (
    f"{_FROM_OPTIONS},software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
)
#: While a server is busy, Hadoop doubles its pause up to 20 times by default, which takes days.
_PATIENCE = {"retry.throttle.limit": "9"}
#: Limits of replctl's own reads: attempts, and seconds for a connection and for an answer.
_ATTEMPTS, _CONNECT_TIMEOUT, _REQUEST_TIMEOUT = 6, 10, 60
_KEYS = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
}
_DEFAULT_REGION = "us-east-1"
_ROLE = "assumed.role."
#: Options of a role that do not change who assumes it, and with which rights.
_ROLE_OPTIONS = ("arn", "session.name", "session.duration", "sts.endpoint.region")
_WEB_IDENTITY = "AWS_WEB_IDENTITY_TOKEN_FILE"
_CONTAINER = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
#: Providers whose account pyarrow's own search finds, too, and variables of the accounts that the
#: search finds before, apart from keys and profiles.
_SEARCHED_AFTER: Mapping[str, tuple[str, ...]] = {
    "WebIdentityTokenFileCredentialsProvider": (),
    "ContainerCredentialsProvider": (_WEB_IDENTITY,),
    "IAMInstanceCredentialsProvider": (_WEB_IDENTITY,),
    "EC2ContainerCredentialsProviderWrapper": (_WEB_IDENTITY,),  # Hadoop takes the one above
    "InstanceProfileCredentialsProvider": (_WEB_IDENTITY, *_CONTAINER),
}
#: Entries of a profile for which pyarrow's own search uses the profile.
_PROFILE_ACCOUNT = frozenset(
    ("aws_access_key_id", "credential_process", "web_identity_token_file", "sso_account_id")
)
#: Variables without which a provider has no account.
_NEEDED = {
    "WebIdentityTokenFileCredentialsProvider": (_WEB_IDENTITY,),
    "ContainerCredentialsProvider": _CONTAINER,
}


@dataclass(frozen=True, slots=True)
class Account:
    """An account for requests.  If all attributes are None, the readers look for an account where
    AWS programs do.

    Attributes:
        access_key, secret_key, session_token: the keys.
        role: the ARN of a role to assume.
        role_source: the profile that may assume the role; None for the environment's account.
        is_anonymous: requests are not signed.
    """

    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    role: str | None = None
    role_source: str | None = None
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class S3Options:
    """The options for access to a bucket.

    Attributes:
        endpoint: the address of the server; None for Amazon's.
        region: the region of the bucket; None if the readers must find it.
        has_path_style: requests name the bucket in their path, not in the host name.
    """

    endpoint: str | None
    region: str | None
    has_path_style: bool
    account: Account


_chosen: Callable[[], Mapping[str, str]] = dict


def choose_properties(chosen: Callable[[], Mapping[str, str]]) -> None:
    """Set the Spark properties of this process.

    Args:
        chosen: returns the properties; it is called when an option is first needed.
    """
    global _chosen
    _chosen = cache(chosen)


def is_s3(location: str) -> bool:
    """Return whether a location is on S3.

    `s3a://b/t` -> True
    """
    return location.partition("://")[0].lower() in S3_SCHEMES and "://" in location


def canonical_location(location: str) -> str:
    """Return the canonical spelling of a location on S3.

    `S3A://b//t/` -> `s3://b/t`
    """
    return f"s3://{'/'.join(_parts(location))}".rstrip("/")


def s3_options(bucket: str, environment: Mapping[str, str], chosen: Mapping[str, str]) -> S3Options:
    """Return the options for access to a bucket.

    Args:
        environment: environment variables.
        chosen: the user's Spark properties.
    """
    options = _of_environment(environment) | _completed(chosen) | _s3a(chosen)
    own = f"{_BUCKET}{bucket}."
    options |= {n.removeprefix(own): v for n, v in options.items() if n.startswith(own)}
    endpoint = options.get("endpoint") or None
    if endpoint is not None and "://" not in endpoint:
        is_open = options.get("connection.ssl.enabled", "true").lower() == "false"
        endpoint = f"{'http' if is_open else 'https'}://{endpoint}"
    return S3Options(
        endpoint,
        options.get("endpoint.region") or None,
        options.get("path.style.access", "false").lower() == "true",
        _account(options, environment),
    )


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of S3A that environment variables set."""
    found = {_PROVIDER: _USUAL_PROVIDERS, **_PATIENCE}
    if environment.get("AWS_SHARED_CREDENTIALS_FILE"):
        found["auth.profile.file"] = environment["AWS_SHARED_CREDENTIALS_FILE"]
    for name, variable in _KEYS.items():
        if environment.get("AWS_ACCESS_KEY_ID") and environment.get(variable):
            found[name] = environment[variable]
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if endpoint:  # servers other than Amazon's seldom have a host name for each bucket
        found |= {"endpoint": endpoint, "path.style.access": "true"}
        region = region or _DEFAULT_REGION
    if region:
        found["endpoint.region"] = region
    return found


def _s3a(chosen: Mapping[str, str]) -> dict[str, str]:
    start = f"{_HADOOP}{_S3A}"
    return {n.removeprefix(start): value for n, value in chosen.items() if n.startswith(start)}


#: The provider of credentials for an option, unless the user names another provider.
_ASKED_BY = {
    "auth.profile.name": f"{_PACKAGE}auth.ProfileAWSCredentialsProvider",
    # A key without a session token must not be combined with the token of the environment
    "access.key": f"{_PACKAGE}SimpleAWSCredentialsProvider",
}


def _completed(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return options that the user's properties imply: a provider of credentials for each account
    that they name.
    """
    options = _s3a(chosen)
    found: dict[str, str] = {}
    for name in options:
        for key, provider in _ASKED_BY.items():
            place = name.removesuffix(key)
            if place != name and f"{place}session.token" not in options:
                found.setdefault(f"{place}{_PROVIDER}", provider)
    return {name: value for name, value in found.items() if name not in options}


def _account(options: Mapping[str, str], environment: Mapping[str, str]) -> Account:
    """Return the account for a bucket: that of the first provider of credentials that has one.

    Raises:
        FeatureNotSupported: replctl cannot find the account of a provider (0A000).
        ObjectNotInPrerequisiteState: no provider, or a profile, has an account (55000).
    """
    for provider in map(str.strip, options[_PROVIDER].split(",")):
        found = _of_provider(provider, options, environment) if provider else None
        if found is not None:
            return found
    raise ObjectNotInPrerequisiteState(
        f'no provider of credentials in "{_S3A}{_PROVIDER}" has an account',
        detail=f'The providers are "{options[_PROVIDER]}".',
    )


def _of_provider(
    provider: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> Account | None:
    """Return the account of a provider of credentials, given its class; None if it has none."""
    name = provider.rpartition(".")[2]
    match name:
        case (
            "AnonymousAWSCredentialsProvider"
            | "AnonymousCredentialsProvider"
            | "AnonymousAWSCredentials"  # of the first AWS SDK, which Hadoop replaces
        ):
            return Account(is_anonymous=True)
        case "AssumedRoleCredentialProvider":
            return _of_role(provider, options, environment)
        case "SimpleAWSCredentialsProvider":
            return _of_keys({**options, "session.token": ""})
        case "TemporaryAWSCredentialsProvider":
            return _of_keys(options) if options.get("session.token") else None
        case "EnvironmentVariableCredentialsProvider":
            return _of_keys(_environment_keys(environment))
        case "ProfileAWSCredentialsProvider":
            profile = options.get("auth.profile.name") or _used_profile(environment)
            return _of_profile(profile, options, environment)
        case "DefaultCredentialsProvider":
            return _of_search(provider, options, environment)
    if name not in _SEARCHED_AFTER:
        raise _unsupported(provider)
    needed = _NEEDED.get(name, ())
    if needed and not any(environment.get(variable) for variable in needed):
        return None
    return _found_by_pyarrow(provider, options, environment)


def _of_keys(keys: Mapping[str, str]) -> Account | None:
    """Return the account of keys; None if one of them is missing."""
    key, secret = keys.get("access.key"), keys.get("secret.key")
    return Account(key, secret, keys.get("session.token") or None) if key and secret else None


def _environment_keys(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment.get(variable, "") for name, variable in _KEYS.items()}


def _of_search(
    provider: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> Account:
    """Return the account that Amazon's SDK for Java finds: by variables, by web identity, by the
    profile, or on the machine.
    """
    keys = _of_keys(_environment_keys(environment))
    if keys is not None:
        return keys
    if environment.get(_WEB_IDENTITY):  # pyarrow looks there after the profile
        return _found_by_pyarrow(provider, options, environment)
    # pyarrow's own search ignores the roles of profiles
    found = _of_profile(_used_profile(environment), options, environment, is_known=False)
    return found if found.role is not None else Account()


def _found_by_pyarrow(
    provider: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> Account:
    """Return an empty account, with which pyarrow finds the account of a provider, too.

    Raises:
        FeatureNotSupported: pyarrow would find another account before (0A000).
    """
    name = provider.rpartition(".")[2]
    earlier = ("AWS_ACCESS_KEY_ID", *_SEARCHED_AFTER.get(name, ()))
    other = next((variable for variable in earlier if environment.get(variable)), None)
    if other is not None:
        raise _unsupported(provider, f"replctl itself would use the account of {other}.")
    profile = _used_profile(environment)
    if not _PROFILE_ACCOUNT.isdisjoint(_profile(profile, options, environment)):
        raise _unsupported(
            provider, f'replctl itself would use the account of profile "{profile}".'
        )
    return Account()


def _of_role(provider: str, options: Mapping[str, str], environment: Mapping[str, str]) -> Account:
    """Return the account of a role that the account of the environment assumes.

    When a role's credentials expire, pyarrow assumes the role again, with the environment of that
    moment.  So replctl cannot give pyarrow other keys for this.
    """
    role = options.get(f"{_ROLE}arn")
    if not role:
        raise ObjectNotInPrerequisiteState(f'property "{_S3A}{_ROLE}arn" is not set')
    if _of_keys(options) != _of_keys(_environment_keys(environment)):
        raise _unsupported(
            provider,
            "replctl assumes a role only with the keys of the environment, not with those of"
            f" {_S3A}access.key.",
        )
    for name in sorted(options):
        if name.startswith(_ROLE) and name.removeprefix(_ROLE) not in _ROLE_OPTIONS:
            raise _unsupported(provider, f"replctl does not use {_S3A}{name}.")
    return Account(role=role)


def _unsupported(provider: str, why: str | None = None) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'provider of credentials "{provider}" is not supported',
        detail=why or "replctl cannot find the account of this provider for its own reads.",
    )


def _used_profile(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_PROFILE") or "default"


def _of_profile(
    name: str,
    options: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    is_known: bool = True,
) -> Account:
    """Return the account of a profile in the user's configuration files for AWS.

    Args:
        is_known: raise an error if the profile has no account.

    Raises:
        ObjectNotInPrerequisiteState: the profile has no account (55000).
    """
    found = _profile(name, options, environment)
    if "role_arn" in found:
        return Account(role=found["role_arn"], role_source=found.get("source_profile"))
    if is_known and "aws_access_key_id" not in found:
        file = _credentials_file(options, environment)
        raise ObjectNotInPrerequisiteState(f'profile "{name}" has no access key in "{file}"')
    return Account(
        found.get("aws_access_key_id"),
        found.get("aws_secret_access_key"),
        found.get("aws_session_token"),
    )


def _profile(
    name: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the values of a profile; none if there is no such profile."""
    config = Path(environment.get("AWS_CONFIG_FILE") or _aws_folder(environment) / "config")
    found = _section(config, f"profile {name}")
    if not found and name == "default":  # AWS prefers [profile default]
        found = _section(config, name)
    return found | _section(_credentials_file(options, environment), name)


def _credentials_file(options: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    return Path(options.get("auth.profile.file") or _aws_folder(environment) / "credentials")


def _aws_folder(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME", "~")).expanduser() / ".aws"


def _section(file: Path, name: str) -> dict[str, str]:
    """Return a section of a file; an empty one if the section is missing or the file unreadable."""
    from configparser import ConfigParser, Error  # few commands read such a file

    parser = ConfigParser(interpolation=None)
    try:
        parser.read(file, encoding="utf-8")
    except (Error, OSError, UnicodeDecodeError):
        # The profile then has no key, which the caller handles
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}


# -- options for the readers: Spark and pyarrow


def hadoop_properties(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the Hadoop properties with which Spark accesses S3.

    Args:
        chosen: the user's Spark properties.  They take precedence, and are left out of the result.
    """
    options = _of_environment(os.environ) | _completed(chosen)
    found = {f"fs.{scheme}.impl": S3_CONNECTOR for scheme in S3_SCHEMES}
    found |= {f"{_S3A}{name}": value for name, value in options.items()}
    return {name: value for name, value in found.items() if f"{_HADOOP}{name}" not in chosen}


def file_system(location: str) -> tuple[Any, str]:
    """Return pyarrow's file system for a location, and the path in that file system.

    Raises:
        OSError: no file system is known for the scheme.
    """
    from pyarrow import ArrowInvalid, fs

    if is_s3(location):
        bucket, key = _parts(location)
        options = s3_options(bucket, os.environ, _chosen())
        return _s3_file_system(bucket, options), f"{bucket}/{key}".rstrip("/")
    try:
        system, place = fs.FileSystem.from_uri(location)
    except ArrowInvalid as error:
        scheme = location.partition(":")[0]
        raise OSError(errno.EPROTONOSUPPORT, f'no file system for "{scheme}:" is known') from error
    return system, place


@lru_cache(maxsize=64)
def _s3_file_system(bucket: str, options: S3Options) -> Any:
    from pyarrow import fs

    region, account = options.region, options.account
    if region is None and options.endpoint is None:
        region = fs.resolve_s3_region(bucket)
    scheme, _, host = (options.endpoint or "").partition("://")
    with _assuming(account):
        return fs.S3FileSystem(
            access_key=account.access_key,
            secret_key=account.secret_key,
            session_token=account.session_token,
            role_arn=account.role,
            session_name=None if account.role is None else "replctl",
            anonymous=account.is_anonymous,
            region=region,
            scheme=scheme or None,
            endpoint_override=host.rstrip("/") or None,
            force_virtual_addressing=not options.has_path_style,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            connect_timeout=_CONNECT_TIMEOUT,
            request_timeout=_REQUEST_TIMEOUT,
        )


def _assuming(account: Account) -> AbstractContextManager[None]:
    """Set environment variables that name the profile that may assume the account's role.  pyarrow
    reads them only once.
    """
    if account.role_source is None:
        return nullcontext()
    hidden = dict.fromkeys(_KEYS.values())
    return environment_with({**hidden, "AWS_PROFILE": account.role_source})


def _parts(location: str) -> tuple[str, str]:
    """Return the bucket and the key of a location on S3 as Hadoop reads it: the key is not
    percent-decoded, and repeated slashes count as one.

    `s3://b/t//a%20b/` -> (`b`, `t/a%20b`)
    """
    bucket, _, key = location.partition("://")[2].partition("/")
    return bucket, normpath(f"/{key}").lstrip("/")
