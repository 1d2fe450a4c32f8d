"""No redundant synchronisation: without any one set with its waits, flag between the cores, or barrier, there is a hazard.

This includes the events that mmadL1 sets and waits for itself.

It holds for the compiler's synchronisation, and for the explicit one of the examples for Expert mode.
"""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects import scf

from captured import KERNELS, Run, captured
from removal import Call, removed
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.runtime.jit.factory import Factory

FOLDER = Path(__file__).resolve().parent.parent / "examples"
EXAMPLES = sorted(file for file in FOLDER.glob("*.py") if "expert" not in file.stem)
BY_HAND = sorted(file for file in FOLDER.glob("*.py") if "expert" in file.stem)
LONG: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "gemm_expert": ((256, 512, 1024), {}),
    "flash_attention_expert": ((256, 768, 128), {"ahead": 2}),
    "persistent_gemm_expert": ((256, 512, 1024), {"cores": 2}),
    "grouped_gemm_expert": ((256, 2, 256, 1024), {}),
    "causal_attention": ((1, 1280, 128), {}),
    "causal_attention_expert": ((1, 768, 128), {"ahead": 2}),
    "decode_attention_expert": ((1, 8, 1, 1900, 64), {"splits": 2, "ahead": 2}),
    "multi_head_attention": ((3, 512, 1024), {"cores": 2}),
}
"""Where the first of an example's shapes needs no slot twice: one that does, and its tuning."""
SPARE = {
    "multi_head_attention": Counter({
        "hivm.hir.pipe_barrier[<PIPE_V>]": 2,  # share and result, across branches and loops
        "hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE3>, <PIPE_S>] flag = 1": 1,  # weights, besides the flag of the products
    }),
}
"""Waits that the compiler inserts although there is no hazard without them at these sizes: by their first operation, with their
number and purpose. The list is exact: if the compiler's analysis improves, the list must be shortened."""


def _idle(run: Run) -> list[str]:
    found = removed(run.text, [Call(run.before, run.launch.blocks)])
    assert found.there >= 3
    return found.idle


def _in_long_loops(names: dict[str, Any]) -> None:
    """Returns an example on two blocks, if it divides its work between blocks: each has enough tiles to reuse every slot."""
    (factory,) = (value for value in names.values() if isinstance(value, Factory))
    shape, tuned = LONG.get(names["__name__"], (names["SHAPES"][0], {}))
    several = {"blocks": 2} if "blocks" in inspect.signature(factory.function).parameters else {}
    factory(*shape, **several, **tuned)(*names["inputs"](*shape))


@pytest.mark.parametrize("script", [*EXAMPLES, *KERNELS], ids=lambda script: script.stem)
def test_none_is_too_much(script: Path) -> None:
    for run in captured(script, _in_long_loops if script in EXAMPLES else None):
        assert Counter(each.split("; ")[0] for each in _idle(run)) == SPARE.get(script.stem, Counter())
        if "expert" not in script.stem:  # whose author holds all pipes
            assert not any(isinstance(op, hivm.PipeBarrierOp) and op.pipes() == ("ALL",)
                           for loop in parse_module(run.text).walk() if isinstance(loop, (scf.ForOp, scf.WhileOp))
                           for op in loop.walk())


@pytest.mark.parametrize("script", BY_HAND, ids=lambda script: script.stem)
def test_none_is_too_much_by_hand(script: Path) -> None:
    for run in captured(script, _in_long_loops):
        assert _idle(run) == []
