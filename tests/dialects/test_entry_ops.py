"""Op classes that are generated from structured entries: their operands, text, rules and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.irdl import IRDLOperation

from dialects.helpers import Kernel, body, refusal, type_of
from tilelang_npu import ops
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hivm.entry_ops import STRUCTURED_CLASSES, EntryOp, define_structured, structured_op
from tilelang_npu.dialects.text import parse_module, print_module, verify_module
from tilelang_npu.errors import TileError
from tilelang_npu.plugins import MemoryMove, Structured, register_op, temporary, unregister
from tilelang_npu.simulator import simulate


def rotate(outs: Any, ins: Any, facts: Any) -> None:
    """The elements of each row, rotated to the right."""
    outs[0][...] = np.roll(ins[0], facts["by"], -1)


def part(outs: Any, ins: Any, facts: Any) -> None:
    """The rows from a row on go to the second output, and the rows before it to the first one."""
    source, first = ins
    outs[0][:first] = source[:first]
    outs[1][first:] = source[first:]


def load_reversed(outs: Any, ins: Any, facts: Any) -> None:
    """A tile of a tensor, each row from its last element to its first."""
    outs[0][...] = ins[0][..., ::-1]


@pytest.fixture(autouse=True)
def entries() -> Iterator[None]:
    with temporary():
        register_op(Structured, dtypes=("float32",), cost="copy", attributes={"by": int}, hivm="vrotate")(rotate)
        register_op(Structured, dtypes=("float32",), cost="copy", inputs=("src", "first"), outputs=("low", "high"),
                    scalars=("first",), partial=True, hivm="vpart_rows")(part)
        register_op(MemoryMove, dtypes=("float32",), path="gm_ub", hivm="load_reversed")(load_reversed)
        yield


def by(value: int) -> dict[str, Any]:
    return {"by": IntegerAttr(value, i64)}


# -- the classes -------------------------------------------------------------------------------------------------------


def test_a_class_is_generated_from_each_entry() -> None:
    assert set(STRUCTURED_CLASSES) == {"vrotate", "vpart_rows", "load_reversed"}
    kind = structured_op("vrotate")
    assert (kind.__name__, kind.name, kind.__doc__) == ("VrotateOp", "hivm.hir.vrotate", rotate.__doc__)
    assert structured_op("vpart_rows").__name__ == "VpartRowsOp"
    assert issubclass(kind, EntryOp)
    assert kind.ENTRY is ops.operation("rotate")
    assert (kind.PIPES, kind.CORE) == (("V",), "AIV")
    assert structured_op("load_reversed").PIPES == ("MTE2",)
    assert kind in hivm.Hivm.operations


def test_an_entry_has_one_class() -> None:
    kind = structured_op("vrotate")
    entry = ops.operation("rotate")
    assert isinstance(entry, ops.Structured)
    assert define_structured(entry) is kind
    assert STRUCTURED_CLASSES["vrotate"] is kind


@pytest.mark.parametrize("mnemonic", ["vnothing", "rotate", "hivm.hir.vrotate", "vcumsum"])
def test_a_mnemonic_without_a_generated_class(mnemonic: str) -> None:
    with pytest.raises(KeyError, match=mnemonic):
        structured_op(mnemonic)


def test_the_class_goes_with_its_entry() -> None:
    unregister("op", "rotate")
    with pytest.raises(KeyError):
        structured_op("vrotate")
    assert "hivm.hir.vrotate" not in {kind.name for kind in hivm.Hivm.operations}
    assert structured_op("vpart_rows")


# -- operands and results ----------------------------------------------------------------------------------------------


def test_operands_are_inputs_and_outputs(k: Kernel) -> None:
    a, n, low, high = k("4x8xf32 ub"), k("index"), k("4x8xf32 ub"), k("4x8xf32 ub")
    op = structured_op("vpart_rows")([a, n], [low, high])
    assert (op.ins(), op.outs(), len(op.results)) == ((a, n), (low, high), 0)
    assert op.on_memrefs()
    assert not op.on_tensors()


def test_a_result_for_each_tensor_that_is_written(k: Kernel) -> None:
    a, low, high = k("4x8xf32"), k("4x8xf32"), k("2x8xf32")
    op = structured_op("vpart_rows")([a], [low, high])
    assert [result.type for result in op.results] == [low.type, high.type]
    assert [len(structured_op("vrotate")([a], [out]).results) for out in (low, k("4x8xf32 ub"))] == [1, 0]


def test_whether_a_destination_is_read(k: Kernel) -> None:
    a, b, c = k("4x8xf32 ub"), k("4x8xf32 ub"), k("4x8xf32 ub")
    op = structured_op("vpart_rows")([a, b], [b, c])
    assert [op.reads_destination(value) for value in (b, c)] == [True, False]


def test_whether_elements_stay_unwritten_is_what_the_entry_states(k: Kernel) -> None:
    a, b = k("4x8xf32 ub"), k("4x8xf32 ub")
    assert [structured_op(name)([a], [b]).writes_partially() for name in ("vrotate", "vpart_rows")] == [False, True]


# -- text and rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "text"), [
    (lambda k: structured_op("vrotate")([k("4x8xf32 ub")], [k("4x8xf32 ub")], by(3)),
     "hivm.hir.vrotate {by = 3 : i64} ins(%a : memref<4x8xf32, #hivm.address_space<ub>>)"
     " outs(%b : memref<4x8xf32, #hivm.address_space<ub>>)"),
    (lambda k: structured_op("vpart_rows")([k("4x8xf32"), k("index")], [k("4x8xf32"), k("2x8xf32")]),
     "%0, %1 = hivm.hir.vpart_rows ins(%a, %b : tensor<4x8xf32>, index) outs(%c, %d : tensor<4x8xf32>, tensor<2x8xf32>)"
     " -> tensor<4x8xf32>, tensor<2x8xf32>"),
    (lambda k: structured_op("vrotate")([], [k("4x8xf32")]),
     "%0 = hivm.hir.vrotate ins(:) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>"),
], ids=["memrefs", "tensors", "no inputs"])
def test_text(k: Kernel, make: Callable[[Kernel], EntryOp], text: str) -> None:
    module = k.module(make(k))
    verify_module(module)
    assert body(module) == text
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed


def test_results_must_be_the_tensors_that_are_written(k: Kernel) -> None:
    kind = structured_op("vrotate")
    op = kind.__new__(kind)
    a, b = k("4x8xf32"), k("4x8xf32")
    IRDLOperation.__init__(op, operands=[[a], [b]], result_types=[[type_of("2x8xf32")]])
    assert "expected type of operand #1 (tensor<4x8xf32>) to match type of corresponding result (tensor<2x8xf32>)" in refusal(
        k.module(op))


def test_a_tensor_without_its_result(k: Kernel) -> None:
    kind = structured_op("vrotate")
    op = kind.__new__(kind)
    IRDLOperation.__init__(op, operands=[[k("4x8xf32")], [k("4x8xf32")]], result_types=[[]])
    assert "number of tensor results (0) to be equal to the number of output tensors (1)" in refusal(k.module(op))


def test_an_output_has_a_shape_and_an_input_may_have_none(k: Kernel) -> None:
    verify_module(k.module(structured_op("vrotate")([k("index")], [k("4x8xf32 ub")])))
    k = Kernel()
    assert "index" in refusal(k.module(structured_op("vrotate")([k("4x8xf32 ub")], [k("index")])))


# -- values ------------------------------------------------------------------------------------------------------------

PROGRAM = """
func.func @k(%A: memref<4x8xf32, #hivm.address_space<gm>>, %B: memref<4x8xf32, #hivm.address_space<gm>>,
             %C: memref<4x8xf32, #hivm.address_space<gm>>, %n: i32)
    attributes {{hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>,
                hivm.func_core_type = #hivm.func_core_type<AIV>}} {{
  %at_x = arith.constant 0 : i64
  %x = hivm.hir.pointer_cast(%at_x) : {ub}
  %at_y = arith.constant 128 : i64
  %y = hivm.hir.pointer_cast(%at_y) : {ub}
  %at_z = arith.constant 256 : i64
  %z = hivm.hir.pointer_cast(%at_z) : {ub}
  %row = arith.index_cast %n : i32 to index
  {load} ins(%A : {gm}) outs(%x : {ub})
  {load} ins(%B : {gm}) outs(%y : {ub})
  {load} ins(%B : {gm}) outs(%z : {ub})
  hivm.hir.pipe_barrier[<PIPE_ALL>]
  {op}
  hivm.hir.pipe_barrier[<PIPE_ALL>]
  {store} ins(%y : {ub}) outs(%B : {gm})
  {store} ins(%z : {ub}) outs(%C : {gm})
  return
}}
"""


def run(op: str, *given: Any) -> None:
    """Simulates a kernel in which an op works on tiles ``x``, ``y`` and ``z``; the arrays are those of A, B and C."""
    gm, ub = (f"memref<4x8xf32, #hivm.address_space<{space}>>" for space in ("gm", "ub"))
    text = PROGRAM.format(load="hivm.hir.load", store="hivm.hir.store", gm=gm, ub=ub, op=op.format(ub=ub))
    launch = simulate(parse_module(text), [*given], blocks=1, hazards=True)
    assert launch.hazards == []


def arrays() -> list[Any]:
    return list(np.random.default_rng(5).standard_normal((3, 4, 8)).astype(np.float32))


@pytest.mark.parametrize("step", [0, 3, -1])
def test_an_op_of_one_output_computes_the_meaning(step: int) -> None:
    a, b, c = arrays()
    before = b.copy()
    run(f"hivm.hir.vrotate {{{{by = {step} : i64}}}} ins(%x : {{ub}}) outs(%z : {{ub}})", a, b, c, 0)
    np.testing.assert_array_equal(c, a[:, (np.arange(8) - step) % 8])
    np.testing.assert_array_equal(b, before)


@pytest.mark.parametrize("first", [0, 1, 4])
def test_an_op_of_two_outputs_and_a_number_writes_a_part_of_each(first: int) -> None:
    a, b, c = arrays()
    before = b.copy()
    run("hivm.hir.vpart_rows ins(%x, %row : {ub}, index) outs(%y, %z : {ub}, {ub})", a, b, c, first)
    np.testing.assert_array_equal(b, np.concatenate([a[:first], before[first:]]))
    np.testing.assert_array_equal(c, np.concatenate([before[:first], a[first:]]))


def test_the_text_is_unknown_without_the_entry() -> None:
    unregister("op", "rotate")
    with pytest.raises(TileError, match=r"hivm\.hir\.vrotate"):
        run("hivm.hir.vrotate {{by = 1 : i64}} ins(%x : {ub}) outs(%z : {ub})", *arrays(), 0)
