"""Access the bucket as a lab, which writes each object once and may read little.

boto3 reads the endpoint and the credentials from its `AWS_*` variables and files:
https://docs.aws.amazon.com/boto3/latest/guide/configuration.html. No text repeats their values.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO

from nightjar_formats.errors import AlreadyThere, TryAgain, UserError
from nightjar_formats.store_errors import KMS, NOT_IMPLEMENTED, denied_action, refusal_reason
from nightjar_formats.terminal import quoted_text
from nightjar_lab import texts

CONNECT_TIMEOUT, READ_TIMEOUT = 5, 30
TRIES = 4
KEY_ID, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"

_PUT = "s3:PutObject"
# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html; a HEAD has the status alone.
_DENIED = {"AccessDenied", "AllAccessDisabled", "Forbidden", "403"}
_NO_KEY = {"NoSuchKey", "404"}
_BAD_DIGEST = {"BadDigest", "XAmzContentChecksumMismatch"}
_EXISTS = {"PreconditionFailed", "412"}
_UNCHANGED = {"NotModified", "304"}
_OF_CODES = (
    ({"NoSuchBucket"}, texts.NO_BUCKET),
    (
        {"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "InvalidClientTokenId"},
        texts.BAD_CREDENTIALS,
    ),
    ({"301", "AuthorizationHeaderMalformed", "PermanentRedirect"}, texts.OTHER_REGION),
    ({"RequestTimeTooSkewed", "RequestExpired"}, texts.WRONG_CLOCK),
    (_BAD_DIGEST, texts.FILE_CHANGED),
)
_TRANSIENT = {"SlowDown", "RequestTimeout", "ThrottlingException", "ConditionalRequestConflict", "OperationAborted"}


class NoObject(UserError):
    """The object does not exist, or these credentials may not know whether it does."""


class LabBucket:
    """A bucket of S3, used with the credentials of this machine."""

    def __init__(self, name: str, *, tries: int = TRIES) -> None:
        self.name = name
        self._tries = tries
        self._made: Any = None

    def read(self, key: str, tag: str = "") -> tuple[bytes | None, str]:
        """Return an object's content and ETag; None if it still has the ETag `tag`. Raises `UserError`, `TryAgain`."""
        condition = {"IfNoneMatch": tag} if tag else {}
        with self._explained("s3:GetObject"):
            try:
                answer = self._client().get_object(Bucket=self.name, Key=key, **condition)
            except self._errors().ClientError as error:
                code = _code(error)[0]
                if code in _UNCHANGED:
                    return None, tag
                # S3 hides from those who may not list a bucket that an object is missing.
                if code in _NO_KEY | _DENIED:
                    raise NoObject(texts.NO_OBJECT.format(key=key, bucket=self.name)) from None
                raise
            with closing(answer["Body"]) as body:
                return body.read(), str(answer["ETag"])

    def put_once(self, key: str, source: BinaryIO, *, sha256: str) -> bool:
        """Write an object; return True if it was written now, False if it exists with the same content. Blocks.

        S3 compares `sha256`, in hexadecimal digits, with the content. Raises `AlreadyThere` if the object exists and
        the credentials may not read it, another `UserError`, and `TryAgain`.
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
        """
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        with self._explained(_PUT):
            try:
                self._client().put_object(
                    Bucket=self.name, Key=key, Body=source, IfNoneMatch="*", ChecksumSHA256=checksum
                )
            except self._errors().ClientError as error:
                if _code(error)[0] not in _EXISTS:
                    raise
            else:
                return True
        self._compare(key, sha256)
        return False

    def may_write(self, key: str) -> bool:
        """Try to write an object with a wrong digest; raise `UserError` or `TryAgain` if that is not allowed.

        Returns True if the store noticed the digest and stored nothing; False if the object exists.
        """
        wrong = base64.b64encode(hashlib.sha256(b"of something else").digest()).decode()
        with self._explained(_PUT):
            try:
                self._client().put_object(
                    Bucket=self.name, Key=key, Body=b"nightjar-lab doctor\n", IfNoneMatch="*", ChecksumSHA256=wrong
                )
            except self._errors().ClientError as error:
                if _code(error)[0] not in _BAD_DIGEST | _EXISTS:
                    raise
                return _code(error)[0] in _BAD_DIGEST
        return False

    def _compare(self, key: str, sha256: str) -> None:
        try:
            body, _ = self.read(key)
        except NoObject:
            raise AlreadyThere(texts.UNKNOWN_CONTENT.format(key=key)) from None
        if hashlib.sha256(body or b"").hexdigest() != sha256:
            raise UserError(texts.OTHER_CONTENT.format(key=key))

    def check_credentials(self) -> None:
        """Raise `UserError` if credentials are missing or incomplete, without a request to the bucket."""
        for absent, present in ((KEY_ID, SECRET_KEY), (SECRET_KEY, KEY_ID)):
            if os.environ.get(present) and not os.environ.get(absent):
                raise UserError(texts.HALF_A_KEY.format(missing=absent, given=present))
        with self._explained(_PUT):
            if self._session().get_credentials() is None:
                raise UserError(texts.NO_CREDENTIALS)
            self._client()

    @staticmethod
    def _session() -> Any:
        import boto3  # takes 0.15 s and 30 MB, which the agent is spared

        return boto3.Session()

    def _client(self) -> Any:
        if self._made is None:
            from botocore.config import Config

            session = self._session()
            make: Any = session.client  # typed for every service of AWS, by packages that are not installed
            self._made = make(
                "s3",
                # boto3 reads AWS_DEFAULT_REGION; AWS's own services and its other tools set AWS_REGION.
                region_name=session.region_name or os.environ.get("AWS_REGION"),
                config=Config(
                    connect_timeout=CONNECT_TIMEOUT,
                    read_timeout=READ_TIMEOUT,
                    retries={"mode": "standard", "total_max_attempts": self._tries},
                    user_agent_extra="nightjar-lab",
                ),
            )
        return self._made

    @staticmethod
    def _errors() -> Any:
        try:
            from botocore import exceptions
        except ModuleNotFoundError:
            raise UserError(texts.NO_BOTO3) from None
        return exceptions

    @contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        """Turn botocore's errors into ours, with texts that say what to do."""
        exceptions = self._errors()
        try:
            yield
        except exceptions.ClientError as error:
            raise self._answered(error, action) from None
        except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError):
            raise UserError(texts.NO_CREDENTIALS) from None
        except (exceptions.NoRegionError, exceptions.InvalidRegionError):
            raise UserError(texts.NO_REGION.format(bucket=self.name)) from None
        except exceptions.ProfileNotFound:
            raise UserError(texts.NO_PROFILE) from None
        except exceptions.ParamValidationError:
            raise UserError(texts.BAD_BUCKET.format(bucket=quoted_text(self.name))) from None
        except exceptions.BotoCoreError as error:
            # Show only the kind of the error: its text may contain an address with a password.
            raise TryAgain(texts.BUCKET_AWAY.format(bucket=self.name, reason=type(error).__name__)) from None
        except ValueError:
            raise UserError(texts.BAD_ENDPOINT) from None

    def _answered(self, error: Any, action: str) -> Exception:
        code, status = _code(error)
        message = str(error.response.get("Error", {}).get("Message") or "")
        words = {"bucket": self.name, "reason": code or str(status), "action": denied_action(message, action)}
        if status == NOT_IMPLEMENTED:
            return UserError((texts.NO_CONDITIONAL_WRITES if action == _PUT else texts.NOT_IMPLEMENTED).format(**words))
        if status >= 500 or status in (408, 429) or code in _TRANSIENT:
            return TryAgain(texts.BUCKET_AWAY.format(**words))
        if code in _DENIED:
            is_key = words["action"].startswith(KMS)
            text = texts.DENIED_UPLOAD if words["action"] == _PUT else texts.DENIED_KEY if is_key else texts.DENIED
            return UserError(text.format(**words))
        for codes, text in _OF_CODES:
            if code in codes:
                return UserError(text.format(**words))
        words["reason"] = refusal_reason(words["reason"], message)
        return UserError(texts.BUCKET_REFUSED.format(**words))


def _code(error: Any) -> tuple[str, int]:
    """Return the code and the status of botocore's `ClientError`."""
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return str(error.response.get("Error", {}).get("Code", "")) or str(status), status
