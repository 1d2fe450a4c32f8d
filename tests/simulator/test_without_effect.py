"""Ops that are for the toolchain or the card alone: with them a kernel does the same in the same time."""

from __future__ import annotations

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import simulate

A = f"memref<64xf32, {texts.GM}>"
U = f"memref<64xf32, {texts.UB}>"
BODY = "\n".join([texts.tile("u", 0, "64", "f32"), "{first}",
                  f"    hivm.hir.load ins(%A : {A}) outs(%u : {U})", texts.sync("MTE2", "V"),
                  f"    hivm.hir.vadd ins(%u, %u : {U}, {U}) outs(%u : {U})", "{between}", texts.sync("V", "MTE3"),
                  f"    hivm.hir.store ins(%u : {U}) outs(%B : {A})", "{last}"])


def run(first: str = "", between: str = "", last: str = "") -> tuple[bytes, float, int]:
    text = texts.module(texts.kernel("AIV", [f"%A: {A}", f"%B: {A}"], BODY.format(first=first, between=between, last=last)))
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch = simulate(parse_module(text), [a, b], blocks=1)
    assert np.array_equal(b, 2 * a)
    return b.tobytes(), launch.cycles, len(launch.hazards)


@pytest.mark.parametrize(("place", "op"), [
    ("between", f"    annotation.mark %u {{hivm.multi_buffer = 2 : i32}} : {U}"),
    ("first", "    hivm.hir.set_ctrl false at ctrl[60]"),
    ("first", "    hivm.hir.set_mask_norm"),
    ("between", f"    memref.assume_alignment %u, 32 : {U}"),
    ("first", "    hivm.hir.init_debug"),
    ("last", "    hivm.hir.finish_debug"),
])
def test_it_changes_nothing(place: str, op: str) -> None:
    assert run(**{place: op}) == run()
