"""Give every reader of object storage the same account: Spark, delta-rs, and replctl's own reading
of Delta's logs.

The options come from the environment (`AWS_*`), and from the Spark properties of this process
(`spark.hadoop.fs.s3a.*`), which win.  Hadoop's names are the common form.  An option of one bucket
(`fs.s3a.bucket.NAME.*`) wins over that of all buckets.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from functools import cache, lru_cache
from pathlib import Path
from posixpath import normpath
from typing import Any

from replctl.errors import ObjectNotInPrerequisiteState
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
_KEYS = {
    "access.key": "AWS_ACCESS_KEY_ID",
    "secret.key": "AWS_SECRET_ACCESS_KEY",
    "session.token": "AWS_SESSION_TOKEN",
}
_DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class S3Options:
    """How a bucket is reached.

    Attributes:
        endpoint: the address of the server; None for Amazon's.
        region: None to find out.
        has_path_style: the bucket is in the path of a request, not in the name of the host.
        access_key, secret_key, session_token: the account; None to look where programs of AWS do.
        role: the ARN of a role to assume; None for none.
        is_anonymous: requests are not signed.
    """

    endpoint: str | None
    region: str | None
    has_path_style: bool
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    role: str | None = None
    is_anonymous: bool = False


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
    provider = options.get(_PROVIDER, "")
    account = _account(options, environment)
    endpoint = options.get("endpoint") or None
    if endpoint is not None and "://" not in endpoint:
        is_open = options.get("connection.ssl.enabled", "true").lower() == "false"
        endpoint = f"{'http' if is_open else 'https'}://{endpoint}"
    return S3Options(
        endpoint,
        options.get("endpoint.region") or None,
        options.get("path.style.access", "false").lower() == "true",
        *account,
        role=options.get("assumed.role.arn") if "AssumedRole" in provider else None,
        is_anonymous="Anonymous" in provider,
    )


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options of S3A that an environment gives."""
    found = {_PROVIDER: _USUAL_PROVIDERS}
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


def _account(
    options: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str | None, str | None, str | None]:
    """Return access key, secret key and session token; None where the readers find them."""
    provider = options[_PROVIDER]
    if options.get("access.key") and ("Simple" in provider or "Temporary" in provider):
        token = options.get("session.token") if "Temporary" in provider else None
        return options["access.key"], options.get("secret.key"), token
    profile = options.get("auth.profile.name")
    if not profile or "Profile" not in provider:
        return None, None, None
    found = _profile(profile, environment)
    keys = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    access, secret, token = (found.get(key) for key in keys)
    return access, secret, token


def _profile(name: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of a profile of the user's files for programs of AWS.

    Raises:
        ObjectNotInPrerequisiteState: there is no such profile with keys (55000).
    """
    home = Path(environment.get("HOME", "~")).expanduser() / ".aws"
    file = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(file, encoding="utf-8")
    except (Error, OSError, UnicodeDecodeError):  # the error below says which file it is
        parser.clear()
    if not parser.has_option(name, "aws_access_key_id"):
        raise ObjectNotInPrerequisiteState(
            f'profile "{name}" has no access key in "{file}"',
            detail="A profile of one bucket must have its keys there.",
        )
    return parser[name]


# -- the readers


def hadoop_properties(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of Hadoop with which Spark reaches the stores of the environment.

    Args:
        chosen: Spark properties of the user, which win; they are left out.
    """
    options = _of_environment(os.environ) | _completed(chosen)
    found = {"fs.s3.impl": S3_CONNECTOR, **{f"{_S3A}{name}": v for name, v in options.items()}}
    return {name: value for name, value in found.items() if f"{_HADOOP}{name}" not in chosen}


def delta_rs_options(location: str) -> dict[str, str]:
    """Return the storage options with which delta-rs reaches a table on S3."""
    options = s3_options(_parts(location)[0], os.environ, _chosen())
    found = {
        "aws_endpoint": options.endpoint,
        "aws_region": options.region,
        "aws_allow_http": "true" if (options.endpoint or "").startswith("http:") else None,
        "aws_virtual_hosted_style_request": "false" if options.has_path_style else "true",
        "aws_access_key_id": options.access_key,
        "aws_secret_access_key": options.secret_key,
        "aws_session_token": options.session_token,
        "aws_iam_role_arn": options.role,
        "aws_skip_signature": "true" if options.is_anonymous else None,
    }
    return {name: value for name, value in found.items() if value is not None}


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

    region = options.region
    if region is None and options.endpoint is None:
        region = fs.resolve_s3_region(bucket)
    scheme, _, host = (options.endpoint or "").partition("://")
    return fs.S3FileSystem(
        access_key=options.access_key,
        secret_key=options.secret_key,
        session_token=options.session_token,
        role_arn=options.role,
        anonymous=options.is_anonymous,
        region=region,
        scheme=scheme or None,
        endpoint_override=host.rstrip("/") or None,
        force_virtual_addressing=not options.has_path_style,
        check_directory_existence_before_creation=False,
    )


def _parts(location: str) -> tuple[str, str]:
    """Return the bucket and the key of a location on S3, as Hadoop reads it: a key is not encoded,
    and slashes count once.

    `s3://b/t//a%20b/` -> (`b`, `t/a%20b`)
    """
    bucket, _, key = location.partition("://")[2].partition("/")
    return bucket, normpath(f"/{key}").lstrip("/")
