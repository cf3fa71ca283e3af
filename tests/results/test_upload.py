"""Uploading a run to the bucket, over real HTTP to a stand-in for S3."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_FILE_BYTES, MAX_FILES
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.readers.decoding.inflate import GZIP
from nightjar_formats.runs.file_names import is_file_name, upload_names
from nightjar_formats.runs.manifest import read_manifest
from nightjar_formats.runs.offline_check import check_files
from nightjar_formats.runs.upload import PackedRun, UploadFile, pack, pieces, reports_and_artifacts, send
from nightjar_lab.bucket import LabBucket

from bot.core.errors import UserError
from tests.bucket import World

KEY = RunKey("octocat/compiler", "example-lab", "adreno", "a" * 40, "run-1")
FOLDER = f"results/{KEY.folder}"
JUNIT = b'<testsuite name="ops"><testcase classname="ops" name="adds" time="0.1"/></testsuite>'


def packed_run(folder: Path, *names: str, claims: Claims | None = None, key: RunKey = KEY) -> PackedRun:
    paths = [folder / name for name in names or ("ops.xml",)]
    for path in paths:
        path.write_bytes(JUNIT + path.name.encode().join([b"<!--", b"-->"]))
    return pack(key, "results/", list(pieces(paths, None, None, folder)), claims or Claims("operators"))


def sent(packed_run: PackedRun, world: World) -> dict[str, bool]:
    """Send a run; return what was written by this call."""
    sent_pieces: dict[str, bool] = {}

    def progress(piece: UploadFile | None, written: bool) -> None:
        sent_pieces[piece.name if piece else "manifest.json"] = written

    send(packed_run, LabBucket(world.name), progress)
    return sent_pieces


def keys(world: World) -> list[str]:
    """Return the keys in the bucket, in the order in which they were written."""
    listed = world.s3.list_objects_v2(Bucket=world.name).get("Contents", [])
    return [item["Key"] for item in sorted(listed, key=lambda item: item["LastModified"])]


def test_the_manifest_contains_what_is_known_and_nothing_else(tmp_path: Path) -> None:
    small = json.loads(packed_run(tmp_path).manifest)
    assert set(small) == {"schema", "sha", "suite", "attempt", "files"}
    claims = Claims("operators", 2, 1, 4, "2026-11-20T05:10:00Z", "", 0, 42, {"device": "Pixel 9"}, "https://e.org/1")
    prepared = packed_run(tmp_path, claims=claims)
    assert read_manifest(prepared.manifest, KEY).claims == claims
    assert packed_run(tmp_path, claims=claims).manifest == prepared.manifest


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (Claims("operators", started_at="yesterday"), "started_at must be a time with its zone"),
        (Claims("operators", shard_index=5, shard_total=4), "shard.total must be a whole number"),
        (Claims("operators", log_url="x" * 2001), "log_url must be a text"),
    ],
)
def test_a_run_that_the_bot_would_refuse_is_reported_before_anything_is_sent(
    tmp_path: Path, claims: Claims, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        packed_run(tmp_path, claims=claims)


@pytest.mark.parametrize("wrong", [{"lab": "a/b"}, {"target": ".."}, {"sha": "main"}, {"run_id": ""}])
def test_an_invalid_key_is_reported(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(UserError, match="is not the folder of a run"):
        packed_run(tmp_path, key=replace(KEY, **wrong))


def test_files_of_one_name_and_of_other_names_get_names_of_their_own() -> None:
    paths = [Path(name) for name in ("a/x.xml", "b/x.xml", "my results.xml", "日本.xml.gz", ".hidden", "x" * 201)]
    reports_and_artifacts(paths)
    names = upload_names(paths)
    assert names == upload_names(paths)
    assert [re.sub("-[0-9a-f]{12}", "-#", name) for name in names] == [
        "x.xml",
        "x-#.xml",
        "my_results-#.xml",
        "_-#.xml.gz",
        "_-#.hidden",
        f"{'x' * 80}-#",
    ]


def test_a_name_made_safe_is_not_that_of_another_file() -> None:
    [_, safe] = upload_names([Path("a/x.xml"), Path("b/x.xml")])
    names = upload_names([Path("a/x.xml"), Path("b/x.xml"), Path(safe)])
    assert names[2] == safe
    assert len(set(names)) == 3


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["x.xml", "x.xml"], r"x\.xml is named twice"),
        (["a/manifest.json"], r"a/manifest\.json has the name of a run's manifest"),
        ([f"{number}.xml" for number in range(MAX_FILES + 1)], "a run has at most 256 files"),
    ],
)
def test_files_that_cannot_be_those_of_one_run_are_refused(paths: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        reports_and_artifacts([Path(path) for path in paths])


NAMES = st.one_of(
    st.text(alphabet="aB1._+- é", min_size=1, max_size=8).filter(lambda name: name not in (".", "..")),
    st.sampled_from(["a" * 200, "a" * 201, "te.xml", "manifest.json.gz", "-a.xml", "a\nb", "日本.xml"]),
)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), NAMES), max_size=6, unique=True))
def test_every_name_becomes_one_that_the_bot_accepts(pairs: list[tuple[str, str]]) -> None:
    paths = [Path(folder, name) for folder, name in pairs]
    names = upload_names(paths)
    assert len(set(names)) == len(paths)
    assert all(is_file_name(name) for name in names)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), NAMES), min_size=1, max_size=4))
def test_check_refuses_the_names_that_upload_refuses(pairs: list[tuple[str, str]]) -> None:
    paths = [Path(folder, name) for folder, name in pairs]
    faults = [file.problem for file in check_files(paths).files if not file.unreadable]
    if faults:
        with pytest.raises(UserError, match=re.escape(faults[0])):
            reports_and_artifacts(paths)
    else:
        reports_and_artifacts(paths)


def test_a_folder_in_place_of_files_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder; name the files in it"):
        reports_and_artifacts([tmp_path])


def test_a_file_that_cannot_be_sent_is_reported(tmp_path: Path) -> None:
    large = tmp_path / "large.xml"
    with large.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UserError, match=r"large\.xml has more than 64 MiB"):
        list(pieces([large], None, None, tmp_path))
    with large.open("r+b") as file:
        file.write(GZIP)
    with pytest.raises(UserError, match=r"large\.xml has more than 64 MiB even compressed, .*; use shards"):
        list(pieces([large], None, "gz", tmp_path))
    for path in (tmp_path / "missing.xml", tmp_path):
        with pytest.raises(UserError, match="cannot be read"):
            list(pieces([path], None, None, tmp_path))


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_compression_is_deterministic_and_happens_once(tmp_path: Path, compression: str) -> None:
    path, copies, second_folder = tmp_path / "ops.xml", tmp_path / "copies", tmp_path / "again"
    path.write_bytes(JUNIT * 1000)
    copies.mkdir()
    second_folder.mkdir()
    [piece] = pieces([path], "junit", compression, copies)
    assert (piece.name, piece.bytes < len(JUNIT) * 10) == (f"ops.xml.{compression}", True)
    assert [compressed_file.sha256 for compressed_file in pieces([path], "junit", compression, second_folder)] == [
        piece.sha256
    ]
    assert list(pieces([piece.path], "junit", compression, second_folder)) == [piece]


def test_files_come_first_and_the_manifest_last(tmp_path: Path, aws_world: World) -> None:
    pieces_sent = sent(packed_run(tmp_path, "a.xml", "b.xml"), aws_world)
    assert list(pieces_sent.items()) == [("a.xml", True), ("b.xml", True), ("manifest.json", True)]
    assert set(keys(aws_world)) == {f"{FOLDER}a.xml", f"{FOLDER}b.xml", f"{FOLDER}manifest.json"}


def test_an_object_that_exists_is_skipped(tmp_path: Path, aws_world: World) -> None:
    prepared = packed_run(tmp_path, "a.xml", "b.xml")
    aws_world.put(f"{FOLDER}a.xml", (tmp_path / "a.xml").read_bytes())
    assert sent(prepared, aws_world) == {"a.xml": False, "b.xml": True, "manifest.json": True}
    assert sent(prepared, aws_world) == {"a.xml": False, "b.xml": False, "manifest.json": False}


def test_another_run_with_the_same_id_is_never_overwritten(tmp_path: Path, aws_world: World) -> None:
    sent(packed_run(tmp_path), aws_world)
    first_manifest = aws_world.s3.get_object(Bucket=aws_world.name, Key=f"{FOLDER}manifest.json")["Body"].read()
    with pytest.raises(UserError, match="upload under another run ID"):
        sent(packed_run(tmp_path, claims=Claims("another")), aws_world)
    assert aws_world.s3.get_object(Bucket=aws_world.name, Key=f"{FOLDER}manifest.json")["Body"].read() == first_manifest


def test_with_write_only_credentials_an_interrupted_upload_continues(tmp_path: Path, aws_world: World) -> None:
    prepared = packed_run(tmp_path, "a.xml", "b.xml")
    aws_world.put(f"{FOLDER}a.xml", (tmp_path / "a.xml").read_bytes())
    aws_world.server.forbid(aws_world.name, "s3:GetObject")
    assert sent(prepared, aws_world) == {"a.xml": False, "b.xml": True, "manifest.json": True}
    with pytest.raises(UserError, match="a run with this ID was uploaded before"):
        sent(prepared, aws_world)


def test_a_bucket_that_does_not_answer_is_reported_with_how_to_continue(tmp_path: Path, own_world: World) -> None:
    prepared = packed_run(tmp_path)
    own_world.server.stop()
    with pytest.raises(UserError, match="repeat the same command with --run-id run-1"):
        sent(prepared, own_world)


def test_missing_permissions_of_the_credentials_are_named(tmp_path: Path, aws_world: World) -> None:
    aws_world.server.forbid(aws_world.name, "s3:PutObject")
    with pytest.raises(UserError, match="s3:PutObject is denied"):
        sent(packed_run(tmp_path), aws_world)
    assert keys(aws_world) == []
