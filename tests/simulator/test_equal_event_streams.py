"""The two kinds of cores of a block may record equal numbers, which have different meanings."""

from __future__ import annotations

import numpy as np

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import simulate


def test_each_core_has_its_own_records() -> None:
    """The Cube core stores to A, as its only op; the Vector core's only op touches no tensor."""
    kind = f"memref<4xi64, {texts.GM}>"
    store = ("    %b = hivm.hir.get_block_idx -> i64\n    %i = arith.index_cast %b : i64 to index\n"
             f"    memref.store %b, %A[%i] : {kind}")
    text = texts.module(texts.kernel("AIC", [f"%A: {kind}"], store, "k_mix_aic"),
                        texts.kernel("AIV", [f"%A: {kind}"], "    hivm.hir.pipe_barrier[<PIPE_ALL>]", "k_mix_aiv"))
    a = np.full(4, -1, np.int64)
    launch = simulate(parse_module(text), [a], blocks=4, hazards=True)
    assert launch.hazards == []
    assert a.tolist() == [0, 1, 2, 3]
    same = text.replace("%A[%i]", "%A[%c0]").replace("    %b =", "    %c0 = arith.constant 0 : index\n    %b =", 1)
    assert {hazard.code for hazard in simulate(parse_module(same), [a], blocks=4, hazards=True).hazards} == {"S203"}
