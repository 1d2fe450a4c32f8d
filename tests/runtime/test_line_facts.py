"""Facts of the lines of a kernel: buffers with types, memories and bytes, and times that add up."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.runtime.reports.line_facts import SourceLineFacts, line_facts


@tilelang.jit(out_idx=[2], target="npuir")
def product(rows, inner, columns):
    @T.prim_func
    def kernel(A: T.Tensor((rows, inner), "float16"), B: T.Tensor((inner, columns), "float16"),
               C: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, 64), is_npu=True) as (block, _):
            a = T.alloc_L1((64, 64), "float16")
            b = T.alloc_L1((64, columns), "float16")
            c = T.alloc_L0C((64, columns), "float32")
            for k in T.Pipelined(T.ceildiv(inner, 64), num_stages=2):
                T.copy(A[block * 64, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, c, initC=(k == 0))
            T.copy(c, C[block * 64, 0])

    return kernel


def _by_statement(facts: tuple[SourceLineFacts, ...]) -> dict[str, SourceLineFacts]:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return {lines[one.line - 1].strip(): one for one in facts}


@pytest.fixture(scope="module")
def facts() -> tuple[SourceLineFacts, ...]:
    kernel = product(128, 256, 128)
    return line_facts(kernel, kernel.trace())


def test_a_line_has_the_buffers_that_it_accesses_with_types_memories_and_bytes(facts: tuple[SourceLineFacts, ...]) -> None:
    found = _by_statement(facts)
    load = found["T.copy(A[block * 64, k * 64], a)"]
    assert [str(buffer) for buffer in load.buffers] == [
        "A: float16[128, 256] in GM, 65,536 B; reads 8,192 B",
        "a: float16[64, 64] in L1, 8,192 B, 2 slots; writes 8,192 B"]
    work = {buffer.name: buffer for buffer in found["T.gemm(a, b, c, initC=(k == 0))"].buffers}
    assert (work["c"].where, work["c"].dtype, work["c"].nbytes) == ("L0C", "float32", 64 * 128 * 4)
    assert work["a"].reads
    assert not work["a"].writes
    assert work["c"].writes
    declared = found['c = T.alloc_L0C((64, columns), "float32")']
    assert [(buffer.reads, buffer.writes, buffer.accessed) for buffer in declared.buffers] == [(False, False, None)]


def test_times_of_lines_are_parts_of_the_launch(facts: tuple[SourceLineFacts, ...]) -> None:
    total = {one.total for one in facts}
    assert len(total) == 1
    parts = sum(one.us or 0.0 for one in facts)
    assert 0 < parts < total.pop()
    work = _by_statement(facts)["T.gemm(a, b, c, initC=(k == 0))"].work
    assert work["AIC M"] > 0


def test_without_a_launch_there_are_no_times() -> None:
    facts = line_facts(product(128, 256, 128), None)
    assert {one.us for one in facts} == {None}
    assert "us of the critical path" not in "".join(one.markdown() for one in facts)


@tilelang.jit(target="npuir")
def open_sizes():
    rows = T.symbolic("rows")

    @T.prim_func
    def kernel(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((rows, 64), "float32")):
        with T.Kernel(T.ceildiv(rows, 8), is_npu=True) as (block, _):
            a = T.alloc_ub((8, 64), "float32")
            T.copy(A[block * 8, 0], a)
            T.copy(a, B[block * 8, 0])

    return kernel


def test_sizes_of_run_time_have_names_and_no_bytes() -> None:
    found = _by_statement(line_facts(open_sizes(), None))
    load = found["T.copy(A[block * 8, 0], a)"]
    assert str(load.buffers[0]).startswith("A: float32[rows, 64] in GM; reads")
