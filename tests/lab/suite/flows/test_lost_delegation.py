"""A lost delegation of the real TVM gives one message with its commit, and two equal runs give none."""

from __future__ import annotations

from pathlib import Path

from tests.bucket import World
from tests.conversations.channels import LabNews, town_with_channels
from tests.conversations.lab import LAB, TARGET
from tests.lab.suite.flows.test_backends import pytestmark, run

__all__ = ["pytestmark"]
FLOW = "tvm-llvm"
WITHOUT_RELU = '''\
"""The flow `tvm-llvm`, whose lowering leaves out one operator."""

from dataclasses import replace

from nightjar_lab.suite.flows import tvm_llvm
from tvm import relax

LEGALIZE = relax.transform.LegalizeOps


def without_relu():
    # Only the flow's own lowering: that of the runtime's pipeline then compiles what is left.
    relax.transform.LegalizeOps = LEGALIZE
    return LEGALIZE(skip_ops=["relax.nn.relu"])


def lower(model, data):
    relax.transform.LegalizeOps = without_relu
    return tvm_llvm._lower(model, data)


FLOW = replace(tvm_llvm.FP32, lower=lower)
'''


async def test_one_message_names_the_commit_with_which_an_operator_left_the_delegate(
    tmp_path: Path, aws_world: World
) -> None:
    async with town_with_channels(tmp_path, aws_world, "") as (place, channels):
        news, commits = LabNews(place, channels), list[str]()
        for night, flow in enumerate((FLOW, FLOW, "without_relu:FLOW")):
            # Each in a folder of its own, as a run goes on where the one before it in the same folder stopped.
            folder = tmp_path / f"night-{night}"
            folder.mkdir()
            (folder / "without_relu.py").write_text(WITHOUT_RELU, encoding="utf-8")
            report = folder / "report.csv"
            run(folder, flow, "onnx-models", "--filter", "^mlp$", "--report", str(report))
            commits.append(place.nightly_run())
            place.upload(commits[-1], {"report.csv": report.read_bytes()}, target=TARGET)
            await place.settle()
            assert len(news.titles) == (flow != FLOW)
        (text,) = channels.discord.said
        title, *items = text.splitlines()
        assert f"{LAB}/{TARGET} since {commits[2][:7]}" in title
        assert any("partly left the delegate, delegated_nodes 6 -> 5" in item for item in items)
