"""``torch_npu.profiler``: the launches of kernels with their modelled times, and the vendor's files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from samples import doubled, split_product
from tilelang_npu import compat

torch: Any = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _installed() -> None:
    compat.install()


def _rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


def test_a_row_for_each_launch_with_its_time(tmp_path: Path) -> None:
    import torch_npu

    kernel, x = doubled(32, 64), torch.ones(32, 64, device="npu")
    expected = kernel.estimate().time_us
    handler = torch_npu.profiler.tensorboard_trace_handler(tmp_path, worker_name="../worker")
    config = torch_npu.profiler._ExperimentalConfig(
        aic_metrics=torch_npu.profiler.AiCMetrics.PipeUtilization, profiler_level=torch_npu.profiler.ProfilerLevel.Level1,
        data_simplification=False)
    with torch_npu.profiler.profile(
            activities=[torch_npu.profiler.ProfilerActivity.NPU], on_trace_ready=handler, record_shapes=False,
            profile_memory=False, with_stack=False, with_flops=False, with_modules=False,
            experimental_config=config) as profile:
        for _ in range(3):
            kernel(x)
        torch.npu.synchronize()
    kernel(x)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("___worker_")
    assert folder.name.endswith("_ascend_pt")
    output = folder / "ASCEND_PROFILER_OUTPUT"
    rows = _rows(output / "kernel_details.csv")
    facts = [(row["Name"], row["Accelerator Core"], row["Block Dim"]) for row in rows]
    assert facts == [("doubled", "AI_VECTOR_CORE", "4")] * 3
    assert [float(row["Duration(us)"]) for row in rows] == pytest.approx([expected] * 3, abs=1e-3)
    starts = [float(row["Start Time(us)"]) for row in rows]
    assert np.diff(starts) == pytest.approx([expected] * 2, abs=2e-3)
    (total,) = _rows(output / "op_statistic.csv")
    assert (total["OP Type"], total["Count"]) == ("doubled", "3")
    assert float(total["Total Time(us)"]) == pytest.approx(3 * expected, abs=1e-3)
    events = [event for event in json.loads((output / "trace_view.json").read_text()) if event["ph"] == "X"]
    assert [event["dur"] for event in events] == pytest.approx([expected] * 3)
    (average,) = profile.key_averages()
    assert (average["key"], average["count"], average["mean_us"]) == ("doubled", 3, pytest.approx(expected))
    assert profile.key_averages().table(sort_by="npu_time_total", row_limit=10).splitlines()[1].split()[:2] == ["doubled", "3"]


def test_each_launch_of_a_call_has_its_row_and_its_cores() -> None:
    import torch_npu

    kernel = split_product(64, 64, 64, 2)
    with torch_npu.profiler.profile() as profile:
        kernel(np.ones((64, 64), np.float16), np.ones((64, 64), np.float16), np.zeros((2, 64, 64), np.float32))
    assert [event.cores for event in profile.events()] == ["AIC", "AIV"]
    assert len({event.name for event in profile.events()}) == 2


def test_a_schedule_chooses_the_steps() -> None:
    kernel, x = doubled(32, 64), torch.ones(32, 64, device="npu")
    seen: list[list[int | None]] = []
    with torch.npu.profiler.profile(
            schedule=torch.npu.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1),
            on_trace_ready=lambda profile: seen.append([event.step for event in profile.events()])) as profile:
        for _ in range(12):
            kernel(x)
            profile.step()
    assert seen == [[3, 4], [7, 8]]


def test_the_last_steps_are_handed_over_at_the_end() -> None:
    kernel, x = doubled(32, 64), torch.ones(32, 64, device="npu")
    seen: list[int] = []
    profile = torch.npu.profiler.profile(schedule=torch.npu.profiler.schedule(wait=0, active=4),
                                         on_trace_ready=lambda profile: seen.append(len(profile.events())))
    profile.start()
    for _ in range(2):
        kernel(x)
        profile.step()
    profile.stop()
    profile.stop()
    assert seen == [2]


@pytest.mark.parametrize("wrong", [{"active": 0}, {"wait": -1}, {"skip_first": -1}])
def test_a_schedule_without_steps_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="active"):
        torch.npu.profiler.schedule(**{"wait": 0, "active": 1, **wrong})


def test_a_trace_is_exported_with_its_words(tmp_path: Path) -> None:
    import torch_npu.profiler

    kernel, x = doubled(32, 64), torch.ones(32, 64, device="npu")
    with torch_npu.profiler.profile(on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(tmp_path / "out")) as profile:
        profile.add_metadata("run", "first")
        profile.add_metadata_json("sizes", "[32, 64]")
        kernel(x)
    profile.export_chrome_trace(tmp_path / "trace.json")
    assert [event["name"] for event in json.loads((tmp_path / "trace.json").read_text())][1:] == ["doubled"]
    (words,) = (tmp_path / "out").glob("*/profiler_metadata.json")
    assert json.loads(words.read_text()) == {"run": "first", "sizes": [32, 64]}
