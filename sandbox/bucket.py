"""A simulated S3 and SQS on this machine, over real HTTP: for tests and `make demo`.

    with BucketServer() as server:                    # server.environment: the AWS_* variables for its clients
        server.create_bucket("device-results")
        queue_url = server.create_queue("device-results", "arrivals")        # receives every manifest.json
        server.client("s3").put_object(Bucket="device-results", Key="results/…/manifest.json", Body=b"{}")

It runs moto (https://docs.getmoto.org/en/latest/docs/server_mode.html) in a process of its own, which ends with the
process that started it, even if that is killed. Its content is in memory: after a restart it is empty.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

REGION = "us-east-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "sandbox",
    "AWS_SECRET_ACCESS_KEY": "nobody's secret",
    "AWS_DEFAULT_REGION": REGION,
    # Hide the settings of the person who runs this, who may have an account at AWS.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
NOTHING_OF_THE_PERSONS = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
"""The same settings for botocore in this process: key in a file, variable, value and type."""


class BucketServer:
    """The server: `with`, or `start` and `stop`, run it. After a restart it has the same port and is empty.

    `port` 0 is any free port.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._process: subprocess.Popen[str] | None = None
        self._clients: dict[str, Any] = {}

    @property
    def url(self) -> str:
        """Return the address at which it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables with which boto3 uses it, in any process."""
        return {**ENVIRONMENT, "AWS_ENDPOINT_URL": self.url}

    def start(self) -> Self:
        """Start it and wait until it listens. Raises AssertionError with its output if it does not."""
        # Elsewhere, nobody may listen on a port that another process has bound.
        if not self.port and sys.platform == "linux":
            self._hold_a_port()
        root = str(Path(__file__).parent.parent)
        process = subprocess.Popen(  # noqa: S603  # no argument comes from outside
            # Run the file by its path, because `-m` would also import its package; `-P` leaves out the file's folder.
            [sys.executable, "-P", __file__, str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            start_new_session=True,  # Ctrl-C is only for the process that started it
            env={name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "COVERAGE_"))},
        )
        assert process.stdout is not None
        first_line = process.stdout.readline()
        if not first_line.strip().isdigit():
            process.kill()
            process.communicate()
            raise AssertionError(f"the S3 stand-in did not start: {first_line}")
        self.port = int(first_line)
        self._process = process
        return self

    def _hold_a_port(self) -> None:
        """Take a free port, which no other program gets between two starts.

        Linux lets the server listen on a port that is only bound here, but gives it to nobody who asks for any.
        """
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        self.port = held.getsockname()[1]
        weakref.finalize(self, os.close, held.detach())

    def stop(self) -> None:
        """Stop it; its content is lost."""
        process, self._process = self._process, None
        for client in self._clients.values():
            client.close()
        self._clients = {}
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def client(self, service: str) -> Any:
        """Return a boto3 client of `s3` or `sqs` with the credentials of the account's owner."""
        import boto3
        import botocore.session

        if service not in self._clients:
            session = boto3.Session(
                botocore_session=botocore.session.Session(session_vars=NOTHING_OF_THE_PERSONS),
                aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
                region_name=REGION,
            )
            make: Any = session.client  # boto3 has no types without further packages
            self._clients[service] = make(service, endpoint_url=self.url)
        return self._clients[service]

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        self.client("s3").create_bucket(Bucket=name)

    def create_queue(self, bucket: str, name: str, *, visibility: int = 30, suffix: str = "manifest.json") -> str:
        """Create a queue for every object of the bucket whose key has this suffix; return its URL.

        `visibility` is in seconds: a message that was received and not deleted is delivered again after this time.
        """
        sqs = self.client("sqs")
        attributes: Mapping[str, str] = {"VisibilityTimeout": str(visibility)}
        url = str(sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        configuration: dict[str, Any] = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}
        if suffix:
            configuration["Filter"] = {"Key": {"FilterRules": [{"Name": "suffix", "Value": suffix}]}}
        self.client("s3").put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [configuration]}
        )
        return url

    def forbid(self, bucket: str, *actions: str) -> None:
        """Deny these actions on the bucket's objects to everybody; without actions, allow everything again."""
        s3 = self.client("s3")
        if not actions:
            s3.delete_bucket_policy(Bucket=bucket)
            return
        statement = {"Effect": "Deny", "Principal": "*", "Action": actions, "Resource": f"arn:aws:s3:::{bucket}/*"}
        s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def _serve(port: int) -> None:
    """Listen, print the port, and exit when the other end of standard input is closed."""
    import logging
    import threading

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(
        "127.0.0.1",
        port,
        DomainDispatcherApplication(create_backend_app),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
    # Queue URLs contain the port.
    os.environ["MOTO_PORT"] = str(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # a long poll in one of the threads would delay a normal exit


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
