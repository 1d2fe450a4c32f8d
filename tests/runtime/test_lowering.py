"""The cache around lowering: a hit is the same text and the same results, and a change is never a hit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC, doubled, product, symbolic_rows
from tilelang_npu.dialects.text import print_module
from tilelang_npu.runtime.cache import entries

pytestmark = pytest.mark.kept


def compiled(func, **settings):
    return tilelang.compile(func, **{"out_idx": [-1], "target": "ascendc", "pass_configs": SYNC, **settings})


@pytest.mark.parametrize("make", [lambda: doubled.function(40, 64), symbolic_rows], ids=["constant", "symbolic"])
def test_a_hit_is_the_same_text_and_the_same_result(make, rng: np.random.Generator) -> None:
    a = rng.standard_normal((40, 64)).astype(np.float32)
    first = compiled(make())
    entries._State.memory.clear()
    second = compiled(make())
    assert (first._lowering.from_cache, second._lowering.from_cache) == (False, True)
    for generic in (False, True):
        for locations in (False, True):
            assert first.mlir(generic=generic, locations=locations) == second.mlir(generic=generic, locations=locations)
    assert [first.mlir(stage) for stage in first.stages()] == [second.mlir(stage) for stage in second.stages()]
    np.testing.assert_array_equal(first(a), second(a))
    assert first.last_launch.time_us == second.last_launch.time_us


def test_a_product_too(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    first = tilelang.compile(product(), out_idx=[2], target="npuir")
    second = tilelang.compile(product(), out_idx=[2], target="npuir")
    assert second._lowering.from_cache
    assert first.mlir(locations=True) == second.mlir(locations=True)
    np.testing.assert_array_equal(first(a, b), second(a, b))


def make(constant: float):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((64,), "float32")
            T.copy(A, a)
            T.tile.mul(a, a, constant)
            T.copy(a, B)

    return main


def test_what_changes_the_kernel_misses() -> None:
    assert not compiled(make(2.0))._lowering.from_cache
    assert compiled(make(2.0))._lowering.from_cache
    assert not compiled(make(3.0))._lowering.from_cache
    assert not compiled(make(2.0), chip="910B4")._lowering.from_cache
    planned = {**SYNC, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}
    assert not compiled(make(2.0), pass_configs=planned)._lowering.from_cache


def test_an_edited_package_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not compiled(make(2.0))._lowering.from_cache
    monkeypatch.setattr(entries, "versions", lambda: ["another"])
    assert not compiled(make(2.0))._lowering.from_cache


def test_another_process_hits(python: str, root: Path) -> None:
    program = (
        f"import hashlib, sys; sys.path.insert(0, {str(root / 'tests')!r}); from samples import doubled; k = doubled(40, 64);"
        "print(k._lowering.from_cache, hashlib.sha256(k.mlir(locations=True).encode()).hexdigest())"
    )
    command = [python, "-c", program]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(2)]
    assert [run[0] for run in runs] == ["False", "True"]
    assert runs[0][1] == runs[1][1]


def test_a_kernel_that_is_tried_is_the_same_text_and_stays_out_of_the_cache() -> None:
    draft = doubled.draft(40, 64)
    tried = draft.compile()
    assert entries.usage() == (0, 0)
    assert entries._State.memory == {}
    kept = compiled(doubled.function(40, 64))  # the factory may hold one of another test
    assert print_module(tried._lowering.final) == kept.mlir()
    assert entries.usage()[0] == 1
    assert tried.trace().time_us == kept.trace().time_us
