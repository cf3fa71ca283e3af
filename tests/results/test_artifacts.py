"""A run's log and other files on the lab's machine: which are accepted, and how they are sent."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from nightjar_formats import zstd
from nightjar_formats.limits import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS
from nightjar_formats.model import Claims, RunKey
from nightjar_formats.runs.artifacts import artifact_fault
from nightjar_formats.runs.manifest import read_manifest
from nightjar_formats.runs.offline_check import check_run
from nightjar_formats.runs.upload import pack, pieces, reports_and_artifacts
from nightjar_lab.cli.check import report_lines

from tests.lab.kit.running import run_here

KEY = RunKey("octocat/compiler", "example-lab", "adreno", "a" * 40, "run-1")
JUNIT = b'<testsuite name="ops"><testcase classname="ops" name="adds" time="0.1"/></testsuite>'
PNG, SVG = b"\x89PNG\r\n\x1a\n....", b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>'
HTML = b"<html><script>alert(1)</script>"
GOOD = {
    "log.txt": b"building\nFAILED test_add\n",
    "empty.log": b"",
    "page.txt": HTML,  # text is shown as text, whatever is in it
    "powershell.txt": "built\n".encode("utf-16"),
    "latin.txt": b"gr\xfc\xdfe\n",
    "log.txt.gz": gzip.compress(b"built\n"),
    "log.txt.zst": zstd.compress(b"built\n"),
    "numbers.json": b'\xef\xbb\xbf {"a": 1}',
    "plot.png": PNG,
    "photo.JPG": b"\xff\xd8\xff\xe0",
    "plot.gif": b"GIF89a",
    "plot.webp": b"RIFF\x00\x00\x00\x00WEBPVP8 ",
}
TYPE, CONTENT = "has a type that is not accepted", "does not contain what its name says"
BAD = {
    "plot.svg": (SVG, TYPE),
    "page.html": (HTML, TYPE),
    "core": (b"\x7fELF", TYPE),
    "plot.png.gz": (gzip.compress(PNG), TYPE),
    "log.txt.gz.gz": (gzip.compress(b"x"), TYPE),
    "trace.zip": (b"PK\x03\x04", TYPE),
    "svg.png": (SVG, CONTENT),
    "page.jpg": (HTML, CONTENT),
    "wave.webp": (b"RIFF\x00\x00\x00\x00WAVEfmt ", CONTENT),
    "core.txt": (b"\x7fELF\x00\x00", CONTENT),
    "gzip.txt": (gzip.compress(b"x"), CONTENT),
    "plain.txt.gz": (b"plain", CONTENT),
    "core.log.gz": (gzip.compress(b"\x7fELF\x00\x00"), CONTENT),
    "cut.txt.gz": (gzip.compress(b"a log" * 100)[:20], "cut off"),
    "page.json": (HTML, CONTENT),
    "empty.json": (b"", CONTENT),
}


def test_a_type_is_accepted_by_its_name_and_its_first_bytes(tmp_path: Path) -> None:
    for name, content in (GOOD | {name: content for name, (content, _) in BAD.items()}).items():
        (tmp_path / name).write_bytes(content)
        with (tmp_path / name).open("rb") as file:
            fault = artifact_fault(file, name)
        expected = BAD[name][1] if name in BAD else "^$"
        assert re.search(expected, fault), (name, fault)
        assert name in fault or not fault
    with (tmp_path / "large.log").open("w+b") as file:
        file.truncate(MAX_ARTIFACT_BYTES + 1)
        assert "more than 32 MiB" in artifact_fault(file, "large.log")
        assert "zstd" in artifact_fault(file, "large.log"), "it says what to do"


def test_the_log_and_files_of_a_run_are_sent_beside_its_reports(tmp_path: Path) -> None:
    for name, content in {**GOOD, "ops.xml": JUNIT}.items():
        (tmp_path / name).write_bytes(content)
    images = [tmp_path / "plot.png", tmp_path / "my plot.png"]
    images[1].write_bytes(PNG)
    reports, artifacts = reports_and_artifacts([tmp_path / "ops.xml", tmp_path / "log.txt"], images)
    assert [path.name for path in reports] == ["ops.xml"]
    (tmp_path / "sent").mkdir()
    files = list(pieces(reports, "junit", "gz", tmp_path / "sent", artifacts))
    manifest = read_manifest(pack(KEY, "results/", files, Claims("operators")).manifest, KEY)
    assert [(file.name, file.format) for file in manifest.files] == [("ops.xml.gz", "junit")]
    sent = [(re.sub("-[0-9a-f]{12}", "-#", file.name), file.media_type) for file in manifest.artifacts]
    assert sent == [("log.txt.gz", "text/plain"), ("plot.png", "image/png"), ("my_plot-#.png", "image/png")]
    document = json.loads(pack(KEY, "results/", files, Claims("operators")).manifest)
    assert set(document["artifacts"][0]) == {"name", "type", "bytes", "sha256"}
    assert "artifacts" not in json.loads(pack(KEY, "results/", files[:1], Claims("operators")).manifest)


def test_a_folder_of_a_run_is_checked_with_its_artifacts(tmp_path: Path) -> None:
    files = {"ops.xml": JUNIT, "log.txt": GOOD["log.txt"]}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    run = pack(
        KEY, "", list(pieces([tmp_path / "ops.xml"], None, None, tmp_path, [tmp_path / "log.txt"])), Claims("ops")
    )
    (tmp_path / "manifest.json").write_bytes(run.manifest)
    report = check_run(tmp_path)
    assert report.good
    assert list(report_lines(report))[:2] == ["ops.xml: junit: 1 passed", "log.txt: text/plain, for people to read"]
    assert not any("is not in manifest.json" in warning for warning in report.warnings)
    (tmp_path / "log.txt").write_bytes(b"another log")
    assert "log.txt has 11 bytes" in check_run(tmp_path).files[1].problem


def test_the_command_says_what_is_wrong_with_files_before_it_sends_anything(tmp_path: Path) -> None:
    for name, content in {"ops.xml": JUNIT, "log.txt": b"a log", "a.svg": SVG, "notes.txt": b"building\n"}.items():
        (tmp_path / name).write_bytes(content)
    for number in range(MAX_ARTIFACTS + 1):
        (tmp_path / f"{number}.log").touch()
    env = {"NIGHTJAR_REPOSITORY": "octocat/compiler", "NIGHTJAR_LAB": "example-lab", "NIGHTJAR_BUCKET": "results"}
    options = ("--target", "adreno", "--sha", "a" * 40, "--suite", "ops", "--dry-run")

    def upload(*words: str) -> tuple[int, str, str]:
        done = run_here("upload", *options, *(word.replace("~", str(tmp_path)) for word in words), env=env)
        return done.status, done.out, done.err

    status, out, _ = upload("~/ops.xml", "~/log.txt", "--file", "~/[0-9].log")
    assert status == 0
    assert len(json.loads(out.partition("\n")[2])["artifacts"]) == 11
    for words, remedy in {
        ("~/ops.xml", "--file", "~/a.svg"): "a.svg has a type that is not accepted",
        ("~/ops.xml", "--file", "~/*.png"): "matches no file; correct it, or leave it out",
        ("~/ops.xml", "--file", "~/*.log"): "at most 64 files beside its reports. Leave some out",
        ("~/ops.xml", "--file", "~/log.txt", "--file", "~/l*.txt"): "log.txt is named twice",
        ("~/log.txt",): "Name the report as well",
        ("~/notes.txt",): "If it is a log, send it as log.txt beside a report",
    }.items():
        status, _, err = upload(*words)
        assert (status, remedy in err) == (1, True), (words, err)
