"""The instructions for labs in docs/labs.md, and for maintainers in docs/hardware-results.md, work."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import pytest
from nightjar_formats import limits
from nightjar_formats.model import RunKey
from nightjar_formats.readers import ALIASES, FORMATS
from nightjar_formats.runs.manifest import MANIFEST_KEYS, read_manifest
from nightjar_lab.bucket import LabBucket
from nightjar_lab.main import kit
from ruamel.yaml import YAML

from bot.app.load import parse_config
from bot.cli.main import cli
from bot.core.errors import UserError
from bot.results.guide import documents, limits_table
from handlers.nightly.effects import FOR_LABS
from handlers.results.config import LAB_RESULTS
from tests.bucket import World
from tests.settings import enabled

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs/labs.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAINTAINERS = (ROOT / "docs/hardware-results.md").read_text(encoding="utf-8")
SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
BUCKET = "arn:aws:s3:::device-results"
FOLDER = f"{BUCKET}/results/octocat/compiler"
OURS = f"{FOLDER}/example-lab/adreno/{SHA}/1/te.xml"
NIGHTLY = f"{FOLDER}/nightly.json"
QUEUE = "arn:aws:sqs:us-west-2:123456789012:device-results"


def policy(name: str) -> dict[str, Any]:
    match = re.search(rf"<!-- policy: {name} -->\n```json\n(.*?)```", MAINTAINERS, re.DOTALL)
    assert match is not None, name
    parsed: dict[str, Any] = json.loads(match[1])
    return parsed


def script(name: str) -> str:
    match = re.search(rf"<!-- script: {name} -->\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    assert match is not None, name
    return match[1]


def listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def holds(operator: str, key: str, expected: str, context: dict[str, str]) -> bool:
    """Return whether a condition holds.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    if operator == "Null":
        return (key not in context) == (expected == "true")
    if key not in context:
        return False
    if operator in ("StringEquals", "Bool"):
        return context[key] == expected
    assert operator == "ArnLike", operator
    return fnmatchcase(context[key], expected)


def allowed(*policies: dict[str, Any], action: str, resource: str, **context: str) -> bool:
    """Evaluate policies as AWS does: an action is denied if no statement allows it or one denies it."""
    keys_of_request = {key.replace("__", ":").replace("_", "-"): value for key, value in context.items()}
    effects = {
        statement["Effect"]
        for document in policies
        for statement in document["Statement"]
        if any(fnmatchcase(action, pattern) for pattern in listed(statement["Action"]))
        and any(fnmatchcase(resource, pattern) for pattern in listed(statement["Resource"]))
        and all(
            holds(operator, key, expected, keys_of_request)
            for operator, keys in statement.get("Condition", {}).items()
            for key, expected in keys.items()
        )
    }
    return effects == {"Allow"}


def by_lab(action: str, resource: str, **context: str) -> bool:
    secure = {"aws__SecureTransport": "true", **context}
    return allowed(policy("bucket"), policy("lab"), action=action, resource=resource, **secure)


def test_a_lab_may_write_below_its_own_folder_once_and_read_which_commit_to_test() -> None:
    assert by_lab("s3:PutObject", OURS, s3__if_none_match="*")
    assert by_lab("s3:GetObject", NIGHTLY)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("s3:PutObject", OURS.replace("example-lab", "other-lab")),
        ("s3:PutObject", OURS.replace("example-lab", "example-lab-2")),
        ("s3:PutObject", OURS.replace("octocat/compiler", "octocat/other")),
        ("s3:PutObject", OURS.replace("/results/", "/elsewhere/")),
        ("s3:PutObject", OURS.replace("device-results", "other-bucket")),
        ("s3:PutObject", NIGHTLY),
        ("s3:PutObject", f"{FOLDER}/example-lab"),
        ("s3:GetObject", OURS),
        ("s3:GetObject", NIGHTLY.replace("compiler", "other")),
        ("s3:DeleteObject", OURS),
        ("s3:DeleteObject", NIGHTLY),
        ("s3:PutObjectAcl", OURS),
        ("s3:ListBucket", BUCKET),
        ("s3:PutBucketPolicy", BUCKET),
    ],
)
def test_a_lab_may_do_nothing_else(action: str, resource: str) -> None:
    assert not by_lab(action, resource, s3__if_none_match="*")
    assert not by_lab(action, resource)


def on_ceph(user: str, action: str, resource: str) -> bool:
    """Evaluate the policy for Ceph, which allows users of other accounts only what the bucket's policy does."""
    statements = [
        statement
        for statement in policy("ceph")["Statement"]
        if f"arn:aws:iam:::user/{user}" in statement["Principal"]["AWS"]
    ]
    return allowed({"Statement": statements}, action=action, resource=resource)


def test_the_policy_for_other_stores_lets_labs_upload_and_nothing_else() -> None:
    assert on_ceph("example-lab", "s3:PutObject", OURS)
    assert on_ceph("example-lab", "s3:GetObject", NIGHTLY)
    for resource in (OURS.replace("example-lab", "other-lab"), OURS.replace("example-lab", "example-lab-2"), NIGHTLY):
        assert not on_ceph("example-lab", "s3:PutObject", resource)
    for action in ("s3:GetObject", "s3:DeleteObject", "s3:PutObjectAcl"):
        assert not on_ceph("example-lab", action, OURS)
    assert not on_ceph("example-lab", "s3:ListBucket", BUCKET)
    assert not on_ceph("other-lab", "s3:PutObject", OURS)
    for action, resource in (("s3:ListBucket", BUCKET), ("s3:GetObject", OURS), ("s3:PutObject", NIGHTLY)):
        assert on_ceph("nightjar", action, resource)
    assert not on_ceph("nightjar", "s3:PutObject", OURS)


def test_the_policy_for_other_stores_has_no_conditions_because_they_support_few() -> None:
    """A condition key that a store does not know is missing in every request:

    `Null` holds, and everything is denied.
    """
    assert {key for statement in policy("ceph")["Statement"] for key in statement} == {
        *("Sid", "Effect", "Principal", "Action", "Resource")
    }
    assert {statement["Effect"] for statement in policy("ceph")["Statement"]} == {"Allow"}
    assert not allowed(policy("bucket"), EVERYTHING, action="s3:PutObject", resource=OURS)


EVERYTHING = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@pytest.mark.parametrize("key", [OURS, f"{FOLDER}/example-lab/x", f"{FOLDER}/example-lab/nightly.json"])
def test_nobody_may_overwrite_what_a_lab_may_write(key: str) -> None:
    assert by_lab("s3:PutObject", key, s3__if_none_match="*")
    assert not allowed(policy("bucket"), EVERYTHING, action="s3:PutObject", resource=key)
    assert not allowed(policy("bucket"), EVERYTHING, action="s3:PutObject", resource=key, s3__if_match="etag")


def test_nobody_may_overwrite_a_key_or_write_without_encryption() -> None:
    assert not by_lab("s3:PutObject", OURS)
    assert not by_lab("s3:PutObject", OURS, s3__if_none_match="*", aws__SecureTransport="false")
    assert not allowed(policy("bucket"), EVERYTHING, action="s3:PutObject", resource=OURS)


def test_the_bot_may_read_and_listen_and_say_which_commit_to_test_and_write_nothing_else() -> None:
    bot = policy("bot")
    for action, resource in (
        ("s3:ListBucket", BUCKET),
        ("s3:GetObject", OURS),
        ("sqs:ReceiveMessage", QUEUE),
        ("sqs:DeleteMessage", QUEUE),
    ):
        assert allowed(policy("bucket"), bot, action=action, resource=resource)
    for how in ({"s3__if_none_match": "*"}, {"s3__if_match": "etag"}):
        assert allowed(policy("bucket"), bot, action="s3:PutObject", resource=NIGHTLY, **how)
    for action in ("s3:PutObject", "s3:DeleteObject"):
        assert not allowed(policy("bucket"), bot, action=action, resource=OURS, s3__if_none_match="*")


def test_only_this_bucket_of_this_account_may_write_to_the_queue() -> None:
    queue, send = policy("queue"), "sqs:SendMessage"
    source = {"aws__SourceArn": BUCKET, "aws__SourceAccount": "123456789012"}
    assert allowed(queue, action=send, resource=QUEUE, **source)
    assert not allowed(queue, action=send, resource=QUEUE, **{**source, "aws__SourceArn": "arn:aws:s3:::other"})
    assert not allowed(queue, action=send, resource=QUEUE, **{**source, "aws__SourceAccount": "1"})
    [statement] = policy("trust")["Statement"]
    assert {"sub", "aud"} == {key.rpartition(":")[2] for key in statement["Condition"]["StringEquals"]}


def test_s3_accepts_the_policy_and_notifies_the_queue_of_manifests_alone(aws_world: World) -> None:
    text = json.dumps(policy("bucket")).replace("device-results", aws_world.name)
    aws_world.s3.put_bucket_policy(Bucket=aws_world.name, Policy=text)
    aws_world.s3.delete_bucket_policy(Bucket=aws_world.name)  # the simulated S3 ignores conditions
    url = aws_world.queue(suffix="-")
    sqs = aws_world.server.client("sqs")
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    message = json.loads(json.dumps(policy("notification")).replace(QUEUE, arn))
    aws_world.s3.put_bucket_notification_configuration(Bucket=aws_world.name, NotificationConfiguration=message)
    waiting = aws_world.waiting(url)
    aws_world.put("results/a/te.xml")
    aws_world.put("elsewhere/a/manifest.json")
    assert aws_world.waiting(url) == waiting
    aws_world.put("results/a/manifest.json")
    assert aws_world.waiting(url) == waiting + 1


def test_a_store_that_refuses_an_upload_names_the_policy(aws_world: World) -> None:
    """The simulated S3 ignores conditions, as Ceph does: there, the policy for AWS denies every upload."""
    text = json.dumps(policy("bucket")).replace("device-results", aws_world.name)
    aws_world.s3.put_bucket_policy(Bucket=aws_world.name, Policy=text)
    key, digest = f"results/octocat/compiler/example-lab/adreno/{SHA}/1/te.xml", hashlib.sha256(b"x").hexdigest()
    bucket = LabBucket(aws_world.name)
    try:
        with pytest.raises(UserError) as refused:
            bucket.put_once(key, BytesIO(b"x"), sha256=digest)
    finally:
        aws_world.s3.delete_bucket_policy(Bucket=aws_world.name)
    message = str(refused.value)
    assert "s3:PutObject is denied" in message
    assert "docs/hardware-results.md; Ceph and other stores need one of their own" in message


def yaml_blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


def test_the_documented_step_has_the_inputs_of_the_action() -> None:
    [example] = [block for block in yaml_blocks(GUIDE) if "uses: OWNER/REPO@SHA" in block]
    yaml = YAML(typ="safe")
    *_, step = yaml.load(example)
    inputs = yaml.load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert {"command", "repository", "lab", "target"} <= set(step["with"]) <= set(inputs)


def test_the_documented_app_yaml_is_valid() -> None:
    example = next(block for block in yaml_blocks(MAINTAINERS) if "repositories:" in block)
    results = enabled(parse_config(example.encode(), "app.yaml").repositories["octocat/compiler"], LAB_RESULTS)
    assert tuple(results.labs["example-lab"].targets) == ("hexagon-v73", "adreno")


def test_the_documented_manifest_is_valid_and_every_key_is_described() -> None:
    match = re.search(r"```json\n(\{\"schema\".*?)```", GUIDE, re.DOTALL)
    assert match is not None
    key = RunKey("octocat/compiler", "example-lab", "adreno", SHA, "1")
    assert read_manifest(match[1].encode(), key).claims.pull_request == 42
    table = GUIDE.partition("| key | needed |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.count("|") > 1]
    described = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert described == {"schema", *MANIFEST_KEYS}


def test_the_documented_commands_exist() -> None:
    commands = re.findall(r"^ *\$ (nightjar(?:-lab)?) ((?:.*\\\n)*.*)$", GUIDE + README, re.MULTILINE)
    assert len(commands) >= 6
    for program, line in commands:
        words = shlex.split(line.replace("\\\n", " "), comments=True)
        command: click.Command | None = kit if program == "nightjar-lab" else cli
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None, line
        words = words[: words.index("--")] if "--" in words else words
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_the_tables_match_the_code() -> None:
    for path, text in documents(ROOT).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: run `make docs`"
    for name in FORMATS:
        assert f"| `{name}` |" in GUIDE
    for alias in ALIASES:
        assert f"`{alias}` is another name" in GUIDE


def test_every_limit_is_in_the_table() -> None:
    of_ours = {name for name in vars(limits) if name.startswith("MAX_")}
    source = (ROOT / "bot/results/guide.py").read_text(encoding="utf-8")
    assert of_ours == set(re.findall(r'"(MAX_\w+)"', source))
    assert "512 MiB" in limits_table()


AWS = """#!{python}
import sys, boto3
given = dict(zip(sys.argv[3::2], sys.argv[4::2]))
assert sys.argv[1:3] == ["s3api", "put-object"] and given["--if-none-match"] == "*", sys.argv
with open(given["--body"], "rb") as file:
    boto3.client("s3").put_object(Bucket="{bucket}", Key=given["--key"], Body=file, IfNoneMatch="*")
"""


@pytest.mark.parametrize("how", ["nightly", "nightly-curl"])
def test_a_lab_reads_which_commit_to_test(how: str, aws_world: World) -> None:
    aws_world.put("results/octocat/compiler/nightly.json", json.dumps({"sha": SHA}).encode())
    text = script(how).replace("device-results", aws_world.name).replace("python3", sys.executable)
    env = {
        **aws_world.server.environment,
        "PATH": os.environ["PATH"],
        "ENDPOINT": f"{aws_world.server.url}/{aws_world.name}",
    }
    message = subprocess.run(["bash", "-c", text], env=env, check=True, capture_output=True, text=True)
    assert message.stdout.strip() == (SHA if how == "nightly" else json.dumps({"sha": SHA}))


def test_the_documented_file_is_what_the_bot_writes() -> None:
    documented = json.loads(GUIDE.partition("nightly.json`.\n\n```json\n")[2].partition("```")[0])
    assert tuple(documented) == ("repository", *FOR_LABS)


@pytest.mark.parametrize("how", ["aws", "curl"])
def test_an_upload_without_our_kit_is_valid(how: str, tmp_path: Path, aws_world: World) -> None:
    aws = tmp_path / "bin" / "aws"
    aws.parent.mkdir()
    aws.write_text(AWS.format(python=sys.executable, bucket=aws_world.name))
    aws.chmod(0o755)
    content = b'{"$report_type": "SessionFinish", "exitstatus": 0}\n'
    (tmp_path / "operators.jsonl").write_bytes(content)
    text = script("aws")
    if how == "curl":
        text = text.replace("\nentry()", f"\n{script('curl')}\nentry()")
    env = {
        **aws_world.server.environment,
        "PATH": f"{aws.parent}:{os.environ['PATH']}",
        "SHA": SHA,
        "RUN_ID": "117-1",
        "STATUS": "0",
        "ENDPOINT": f"{aws_world.server.url}/{aws_world.name}",
    }
    subprocess.run(["bash", "-c", text], cwd=tmp_path, env=env, check=True)
    folder = f"results/octocat/compiler/example-lab/adreno/{SHA}/117-1/"
    raw = aws_world.s3.get_object(Bucket=aws_world.name, Key=f"{folder}manifest.json")["Body"].read()
    key = RunKey("octocat/compiler", "example-lab", "adreno", SHA, "117-1")
    [entry] = read_manifest(raw, key).files
    sent = aws_world.s3.get_object(Bucket=aws_world.name, Key=f"{folder}operators.jsonl")["Body"].read()
    assert (entry.bytes, entry.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert sent == content
    repeated = subprocess.run(["bash", "-c", text], cwd=tmp_path, env=env, check=False, capture_output=True)
    assert repeated.returncode != 0  # write-once
