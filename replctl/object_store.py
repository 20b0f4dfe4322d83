"""Give Spark, and replctl's own reading of Delta's logs, the same account for object storage.

The options come from the environment (`AWS_*`), and from the Spark properties of this process
(`spark.hadoop.fs.s3a.*`), which win.  Hadoop's names are the common form.  An option of one bucket
(`fs.s3a.bucket.NAME.*`) wins over that of all buckets.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from pathlib import Path
from posixpath import normpath
from typing import Any

from replctl.errors import ObjectNotInPrerequisiteState
from replctl.process_environment import environment_with
from replctl.record import dataclass

#: Spellings of one store; each engine uses the one that it is given.
S3_SCHEMES = ("s3", "s3a", "s3n")
#: The class by which Spark reaches S3.
S3_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem"

_HADOOP = "spark.hadoop."
_S3A = "fs.s3a."
_BUCKET = "bucket."
_PROVIDER = "aws.credentials.provider"
_PACKAGE = "org.apache.hadoop.fs.s3a."
_FROM_OPTIONS = f"{_PACKAGE}TemporaryAWSCredentialsProvider,{_PACKAGE}SimpleAWSCredentialsProvider"
#: Keys among the options, else the places where every program of AWS looks: environment, profiles
#: and their roles, web identity, the machine.
_USUAL_PROVIDERS = (
    f"{_FROM_OPTIONS},software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
)
#: Hadoop would double its pause 20 times while a server is busy: days.
_PATIENCE = {"retry.throttle.limit": "9"}
#: How long replctl's own reading waits: attempts, and seconds for a connection and for an answer.
_ATTEMPTS, _CONNECT_TIMEOUT, _REQUEST_TIMEOUT = 6, 10, 60
_KEYS = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
}
_DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks.  If all is None, the readers look where programs of AWS do.

    Attributes:
        access_key, secret_key, session_token: its keys.
        role: the ARN of a role to assume.
        role_source: the profile that may assume it; None for the environment's account.
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
    """How a bucket is reached.

    Attributes:
        endpoint: the address of the server; None for Amazon's.
        region: None to find out.
        has_path_style: the bucket is in the path of a request, not in the name of the host.
    """

    endpoint: str | None
    region: str | None
    has_path_style: bool
    account: Account


_chosen: Callable[[], Mapping[str, str]] = dict


def choose_properties(chosen: Callable[[], Mapping[str, str]]) -> None:
    """Set the Spark properties of this process.

    Args:
        chosen: returns them; it is called when an option is needed for the first time.
    """
    global _chosen
    _chosen = cache(chosen)


def is_s3(location: str) -> bool:
    """Return whether a location is on S3.

    `s3a://b/t` -> True
    """
    return location.partition("://")[0].lower() in S3_SCHEMES and "://" in location


def canonical_location(location: str) -> str:
    """Return the one spelling of a location on S3.

    `S3A://b//t/` -> `s3://b/t`
    """
    return f"s3://{'/'.join(_parts(location))}".rstrip("/")


def s3_options(bucket: str, environment: Mapping[str, str], chosen: Mapping[str, str]) -> S3Options:
    """Return how to reach a bucket.

    Args:
        environment: environment variables.
        chosen: Spark properties of the user.
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
    """Return the options of S3A that an environment gives."""
    found = {_PROVIDER: _USUAL_PROVIDERS, **_PATIENCE}
    if environment.get("AWS_SHARED_CREDENTIALS_FILE"):
        found["auth.profile.file"] = environment["AWS_SHARED_CREDENTIALS_FILE"]
    for name, variable in _KEYS.items():
        if environment.get("AWS_ACCESS_KEY_ID") and environment.get(variable):
            found[name] = environment[variable]
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if endpoint:  # a store of its own seldom has a host name for each bucket
        found |= {"endpoint": endpoint, "path.style.access": "true"}
        region = region or _DEFAULT_REGION
    if region:
        found["endpoint.region"] = region
    return found


def _s3a(chosen: Mapping[str, str]) -> dict[str, str]:
    start = f"{_HADOOP}{_S3A}"
    return {n.removeprefix(start): value for n, value in chosen.items() if n.startswith(start)}


#: The provider of credentials that an option asks for, unless the user names another.
_ASKED_BY = {
    "auth.profile.name": f"{_PACKAGE}auth.ProfileAWSCredentialsProvider",
    # A key without a session token must not be combined with the token of the environment
    "access.key": f"{_PACKAGE}SimpleAWSCredentialsProvider",
}


def _completed(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the options that follow from those of the user: a provider of credentials for each
    account that they name.
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
    """Return the account of a bucket; an empty one where the readers find it themselves.

    Raises:
        ObjectNotInPrerequisiteState: a profile has no account (55000).
    """
    provider = options[_PROVIDER]
    if "Anonymous" in provider:
        return Account(is_anonymous=True)
    if "AssumedRole" in provider:
        return Account(role=options.get("assumed.role.arn"))
    if options.get("access.key") and ("Simple" in provider or "Temporary" in provider):
        token = options.get("session.token") if "Temporary" in provider else None
        return Account(options["access.key"], options.get("secret.key"), token)
    profile = options.get("auth.profile.name")
    if profile and "Profile" in provider:
        return _of_profile(profile, options, environment)
    used = environment.get("AWS_PROFILE")
    if used and "Default" in provider:  # of roles, pyarrow's own look takes no notice
        found = _of_profile(used, options, environment, is_known=False)
        return found if found.role is not None else Account()
    return Account()


def _of_profile(
    name: str,
    options: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    is_known: bool = True,
) -> Account:
    """Return the account of a profile of the user's files for programs of AWS.

    Args:
        is_known: the profile must have an account.
    """
    home = Path(environment.get("HOME", "~")).expanduser() / ".aws"
    keys = Path(options.get("auth.profile.file") or home / "credentials")
    config = Path(environment.get("AWS_CONFIG_FILE") or home / "config")
    found = {**_section(config, f"profile {name}"), **_section(keys, name)}
    if "role_arn" in found:
        return Account(role=found["role_arn"], role_source=found.get("source_profile"))
    if is_known and "aws_access_key_id" not in found:
        raise ObjectNotInPrerequisiteState(f'profile "{name}" has no access key in "{keys}"')
    return Account(
        found.get("aws_access_key_id"),
        found.get("aws_secret_access_key"),
        found.get("aws_session_token"),
    )


def _section(file: Path, name: str) -> dict[str, str]:
    """Return a section of a file; an empty one if it is missing, or the file cannot be read."""
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(file, encoding="utf-8")
    except (Error, OSError, UnicodeDecodeError):
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}


# -- the readers


def hadoop_properties(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of Hadoop with which Spark reaches the stores of the environment.

    Args:
        chosen: Spark properties of the user, which win; they are left out.
    """
    options = _of_environment(os.environ) | _completed(chosen)
    found = {f"fs.{scheme}.impl": S3_CONNECTOR for scheme in S3_SCHEMES}
    found |= {f"{_S3A}{name}": value for name, value in options.items()}
    return {name: value for name, value in found.items() if f"{_HADOOP}{name}" not in chosen}


def file_system(location: str) -> tuple[Any, str]:
    """Return pyarrow's file system of a location, and the path there.

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
    """Show pyarrow the profile that may assume a role: it looks in the environment once."""
    if account.role_source is None:
        return nullcontext()
    hidden = dict.fromkeys(_KEYS.values())
    return environment_with({**hidden, "AWS_PROFILE": account.role_source})


def _parts(location: str) -> tuple[str, str]:
    """Return the bucket and the key of a location on S3, as Hadoop reads it: a key is not encoded,
    and slashes count once.

    `s3://b/t//a%20b/` -> (`b`, `t/a%20b`)
    """
    bucket, _, key = location.partition("://")[2].partition("/")
    return bucket, normpath(f"/{key}").lstrip("/")
