"""Run-time errors of modules and calls: each has its code, a description and a location."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Program, simulate


def fault(text: str, args: list[Any], blocks: int = 1, **options: Any) -> TileError:
    with pytest.raises(TileError) as raised:
        simulate(parse_module(text, "kernel.mlir"), args, blocks=blocks, **options)
    return raised.value


def arrays(n: int = 64) -> list[np.ndarray]:
    return [np.zeros(n, np.float32) for _ in range(3)]


def test_wrong_number_of_arguments() -> None:
    error = fault(texts.add_tiles(), arrays())
    assert (error.code, error.message) == ("T401", "k takes 4 arguments, 3 given")
    assert error.notes == ("A: float32 [?]", "B: float32 [?]", "C: float32 [?]", "n: int32")


def test_the_grid_may_be_given_or_not() -> None:
    args = arrays()
    simulate(parse_module(texts.add_tiles()), [*args, 64, 1, 1, 1], blocks=1)
    simulate(parse_module(texts.add_tiles()), [*args, 64], blocks=1)


def test_wrong_element_type() -> None:
    a, b, c = arrays()
    error = fault(texts.add_tiles(), [a, b.astype(np.float64), c, 64])
    assert (error.code, error.message) == ("T402", "argument B: float32 [?] got an array of float64")
    assert error.help == "convert it: .astype(float32)"


def test_wrong_size() -> None:
    a = np.zeros((128, 100), np.float16)
    error = fault(texts.gemm(128, 128, 128), [a, a, a])
    assert (error.code, error.message) == ("T403", "argument A: float16 [128 x 128] got an array of shape (128, 100)")


def test_sizes_may_be_flat_or_inferred() -> None:
    text = texts.row_softmax(64, 8)
    x, y = np.ones((8, 64), np.float32), np.zeros(8 * 64, np.float32)
    simulate(parse_module(text), [x, y], blocks=1)
    assert (y == 1 / 64).all()
    assert fault(text, [x, np.zeros(100, np.float32)]).code == "T403"


def test_not_contiguous() -> None:
    a, b, c = arrays(128)
    error = fault(texts.add_tiles(), [a[::2], b[:64], c[:64], 64])
    assert error.code == "T404"
    assert "ascontiguousarray" in error.help


def test_a_number_for_an_array_and_the_reverse() -> None:
    a, b, c = arrays()
    assert fault(texts.add_tiles(), [a, 3, c, 64]).code == "T405"
    assert fault(texts.add_tiles(), [a, b, c, a]).code == "T405"
    assert fault(texts.add_tiles(), [a, b, c, 1.5]).code == "T405"


@pytest.mark.parametrize("blocks", [0, 70000])
def test_blocks_in_range(blocks: int) -> None:
    assert fault(texts.add_tiles(), [*arrays(), 64], blocks).code == "T406"


def test_access_beyond_the_tensor_names_the_line() -> None:
    text = texts.add_tiles()
    error = fault(text, [*arrays(64), 100])
    assert error.code == "T502"
    assert error.message == "hivm.hir.load touches bytes 0..399 of A, which has 256 bytes in block 0"
    assert error.location is not None
    assert "hivm.hir.load" in text.splitlines()[error.location.line - 1]


def test_negative_tail() -> None:
    error = fault(texts.add_tiles(), [*arrays(64), 64], 2)
    assert (error.code, error.message) == ("T502", "hivm.hir.load has an operand of -1984 elements in block 1")


def test_address_beyond_the_memory() -> None:
    text = texts.add_tiles().replace("%uC_at = arith.constant 16384", "%uC_at = arith.constant 188448")
    assert fault(text, [*arrays(64), 64]).message == "bytes 188448..196639 do not lie in UB, which has 196608 bytes"
    assert fault(text.replace("188448", "188417"), [*arrays(64), 64]).code == "T510"
    fill = (f"{texts.tile('t', 196608 - 32, '16', 'f32')}\n    %c = arith.constant 0.0 : f32\n"
            f"    hivm.hir.vbrc ins(%c : f32) outs(%t : memref<16xf32, {texts.UB}>)")
    static = texts.module(texts.kernel("AIV", [], fill))
    error = fault(static, [])
    assert error.message == "bytes 196576..196639 do not lie in UB, which has 196608 bytes"


def test_op_that_is_not_executed() -> None:
    text = texts.module(texts.kernel("AIV", [], '    "other.thing"() : () -> ()'))
    with pytest.raises(TileError, match=r"T501.*does not execute other.thing"):
        simulate(parse_module(text, allow_unregistered=True), [], blocks=1)


def test_unplanned_buffer() -> None:
    text = texts.module(texts.kernel("AIV", [], f"    %t = memref.alloc() : memref<16xf32, {texts.UB}>"))
    error = fault(text, [])
    assert error.code == "T501"
    assert "memory planning" in error.help


def test_kernels_of_a_module() -> None:
    empty = texts.kernel("AIV", [], "", "one")
    two = texts.module(empty, texts.kernel("AIV", [], "", "two"))
    assert fault(two, []).message == "exactly one kernel is needed, but the module has one, two"
    assert Program(parse_module(two), entry="two").name == "two"
    assert fault(texts.module(texts.kernel("MIX", [], "")), []).code == "T508"
    no_entry = texts.module(empty).replace("hacc.entry, ", "")
    assert fault(no_entry, []).help == "give the device function the attribute hacc.entry"
    unsaid = texts.module(empty).replace(", hivm.func_core_type = #hivm.func_core_type<AIV>", "")
    assert unsaid != texts.module(empty)
    assert (fault(unsaid, []).code, fault(unsaid, []).message) == ("T508", "one does not say which core it is for")


def test_pipe_of_the_other_core() -> None:
    error = fault(texts.module(texts.kernel("AIC", [], texts.flags("set", "V", "MTE2", 0))), [])
    assert (error.code, error.message) == ("T504", "hivm.hir.set_flag names pipe V, which an AIC does not have")


def test_flags_in_range() -> None:
    text = texts.module(texts.kernel("AIV", [], "    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = 16"))
    assert fault(text, []).code == "T505"


def test_unknown_chip() -> None:
    assert fault(texts.add_tiles(), [*arrays(), 64], chip="910B9").code == "T701"


def sync_all(mode: str, pipe: str) -> str:
    """Each block stores its number, all wait, then each stores the sum of all numbers."""
    kind, one = f"memref<?xi64, {texts.GM}>", f"memref<?xi64, {texts.GM}>"
    body = f"""    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0 : i64
    %b = hivm.hir.get_block_idx -> i64
    %bi = arith.index_cast %b : i64 to index
    %nb = hivm.hir.get_block_num -> i64
    %n = arith.index_cast %nb : i64 to index
    memref.store %b, %A[%bi] : {kind}
    hivm.hir.sync_block[<{mode}>, 1 : i16] {pipe}
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z) -> (i64) {{
      %v = memref.load %A[%i] : {one}
      %y = arith.addi %x, %v : i64
      scf.yield %y : i64
    }}
    memref.store %s, %B[%bi] : {kind}"""
    return texts.module(texts.kernel("AIV", [f"%A: {kind}", f"%B: {kind}"], body))


def test_all_blocks_wait_for_each_other() -> None:
    text = sync_all("ALL_VECTOR", "tvector_pipe = <PIPE_MTE3>")
    a, b = np.zeros(48, np.int64), np.zeros(48, np.int64)
    launch = simulate(parse_module(text), [a, b], blocks=48, order=3)
    assert (b == sum(range(48))).all()
    assert launch.waves == 1
    error = fault(text, [np.zeros(49, np.int64)] * 2, 49)
    assert error.code == "S304"
    assert error.message.endswith("must run at the same time, but Ascend910B2 runs at most 48")


def test_a_barrier_that_one_block_leaves_out_hangs() -> None:
    text = sync_all("ALL_VECTOR", "tvector_pipe = <PIPE_MTE3>")
    barrier = next(line for line in text.splitlines() if "sync_block[" in line)
    guarded = f"    %out = arith.cmpi ne, %bi, %c1 : index\n    scf.if %out {{\n{barrier}\n    }}"
    error = fault(text.replace(barrier, guarded), [np.zeros(3, np.int64)] * 2, 3)
    assert error.code == "S303"
    assert error.message == "blocks 0 to 2: S of AIV0 of block 0 waits at a barrier that AIV0 of block 1 never reaches"
    assert error.notes[0].startswith("AIV0 S of block 0 and 1 more  kernel.mlir:")
