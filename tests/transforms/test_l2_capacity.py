"""More stages are never slower: if the workspaces of all blocks would not fit L2, fewer iterations overlap."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilelang_npu.dialects.ir.changes import Rounds
from tilelang_npu.runtime.reports.edit_trials import make_and_time
from tilelang_npu.runtime.reports.kernel_edits import edits_of_refusals

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
CASES = [
    ("gemm", "gemm", (512, 512, 512)), ("flash_attention", "attention", (384, 512, 128)),
    ("flash_attention", "attention", (49152, 1024, 128)), ("causal_attention", "causal_attention", (2, 512, 128)),
    ("causal_attention", "causal_attention", (128, 512, 128)), ("decode_attention", "decode_attention", (2, 32, 4, 2048, 128)),
    ("w4a8_gemm", "w4a8_gemm", (256, 256, 1024)), ("minicv", "exp_of_product", (512, 512, 128)),
]


@pytest.fixture(autouse=True, scope="module")
def examples() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def kernel_of(module: str, name: str, shape: tuple[int, ...], stages: int) -> Any:
    return getattr(importlib.import_module(module), name)(*shape, stages=stages)


@pytest.mark.parametrize(("module", "name", "shape"), CASES, ids=lambda one: str(one))
def test_a_stage_more_is_no_slower(module: str, name: str, shape: tuple[int, ...]) -> None:
    times = [kernel_of(module, name, shape, stages).estimate().time_us for stages in (1, 2, 3, 4)]
    assert all(more <= 1.01 * fewer for fewer, more in zip(times, times[1:], strict=False)), times


def test_the_advice_names_what_does_not_fit() -> None:
    """384 blocks: of scores, products (64 KB) and p (32 KB) five, four and five slots, and of tensors 12.5 MB each way."""
    remarks = kernel_of("flash_attention", "attention", (49152, 1024, 128), 4).explain().remarks
    report = [remark for remark in remarks if "as with num_stages=2" in remark.text]
    assert len(report) == 1 and report[0].edit
    needed, tensors = 384 * (5 * 65536 + 4 * 65536 + 5 * 32768), 2 * 49152 * 128 * 2 + 2 * 1024 * 128 * 2
    for number in (needed, tensors, 192 * 2**20):
        assert f"{number:,}".replace(",", " ") in report[0].text
    few = kernel_of("flash_attention", "attention", (3072, 1024, 128), 4).explain().remarks
    assert not [remark for remark in few if "num_stages=" in remark.text and "slower" in remark.text]


def test_the_edit_that_it_says_is_one_that_can_be_tried() -> None:
    """512 blocks of causal attention keep one iteration between the cores, which no num_stages asks for; 24 need not."""
    kernel = kernel_of("causal_attention", "causal_attention", (128, 512, 128), 4)
    (report,) = (remark for remark in kernel.explain().remarks if isinstance(remark.change, Rounds))
    assert report.text.startswith(
        "the Cube core and the Vector cores work one iteration apart, because num_stages=4 would be slower: the workspaces of "
        "512 blocks")
    assert "launch at most 24 blocks, one for each core," in report.edit
    (edit,) = edits_of_refusals(kernel.explain().source, [report])
    made, time = make_and_time(edit)
    assert made is not None and time is not None
    assert time < 0.6 * kernel.estimate().time_us
    assert not any(isinstance(remark.change, Rounds) for remark in made.explain().remarks)
