"""Whether operations read a buffer's earlier value: sequences, branches, loops, and what comes after an operation."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.first_writes import (
    is_dead_after,
    is_same_value,
    may_read_earlier_value,
    reads_only_own_writes,
)
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

M = "memref<8x6xf32, #hivm.address_space<ub>>"
ROW = "memref<1x6xf32, strided<[6, 1], offset: ?>, #hivm.address_space<ub>>"
WRITE = f"tile.fill %v into %x : f32 into {M}"
READ = f"tile.copy %x to %o : {M} to {M}"
UPDATE = f'tile.elementwise "add" ins(%x, %o : {M}, {M}) outs(%x : {M})'
STORE = f"memref.store %v, %x[%c0, %c0] : {M}"
LOAD = f"%loaded = memref.load %x[%c0, %c0] : {M}"
OTHER = f"tile.fill %v into %o : f32 into {M}"


def _row(at: str, *, read: bool = False) -> str:
    """Returns a write, or a read, of a row."""
    name = f"{'from' if read else 'to'}_{at}"
    region = f"%{name} = tile.region %x[%{at}, 0] [1, 6] keep [0, 1] : {M} to {ROW}\n"
    return region + (f"tile.copy %{name} to %o1 : {ROW} to memref<1x6xf32, #hivm.address_space<ub>>" if read else
                     f"tile.fill %v into %{name} : f32 into {ROW}")


def _for(end: str, *body: str, name: str = "i", start: str = "c0") -> str:
    return f"scf.for %{name} = %{start} to %{end} step %c1 {{\n" + "\n".join(body) + "\n}"


def _if(condition: str, then: str, otherwise: str | None = None) -> str:
    return f"scf.if %{condition} {{\n{then}\n}}" + ("" if otherwise is None else f" else {{\n{otherwise}\n}}")


def _block(*body: str) -> tuple[list[Operation], SSAValue]:
    """Returns the operations after the allocations, and the buffer ``%x`` of 8 x 6 elements."""
    lines = "\n".join(body)
    module = parse_module(f"""func.func @k(%v: f32, %p: i1, %m: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c5 = arith.constant 5 : index
      %c6 = arith.constant 6 : index
      %c7 = arith.constant 7 : index
      %c8 = arith.constant 8 : index
      %o = tile.alloc "o" : {M}
      %o1 = tile.alloc "o1" : memref<1x6xf32, #hivm.address_space<ub>>
      %x = tile.alloc "x" : {M}
      {lines}
      return
    }}""")
    (buffer,) = [op.result for op in module.walk() if isinstance(op, tile.AllocOp) and op.label.data == "x"]
    block = buffer.owner.parent_block()
    ops = list(block.ops)
    return ops[ops.index(buffer.owner) + 1:-1], buffer


@pytest.mark.parametrize(("lines", "reads"), [
    ([WRITE, READ], False), ([READ, WRITE], True), ([OTHER], False), ([], False),
    ([UPDATE], True), ([WRITE, UPDATE], False),
    ([STORE], False), ([STORE, READ], True), ([LOAD], True),
    ([WRITE, LOAD], False), ([_row("c0"), LOAD], True),  # a single element counts as read unless all of the buffer is written
    ([_row("c0"), READ], True), ([_row("c0"), _row("c0", read=True)], False), ([_row("c0"), _row("c1", read=True)], True),
])
def test_a_sequence(lines: list[str], reads: bool) -> None:
    ops, buffer = _block(*lines)
    assert may_read_earlier_value(ops, buffer, Ranges()) is reads


@pytest.mark.parametrize(("lines", "reads"), [
    ([_if("p", WRITE, WRITE), READ], False),
    ([_if("p", WRITE), READ], True),  # the branch may be skipped
    ([_if("p", WRITE, OTHER), READ], True), ([_if("p", WRITE, READ)], True), ([_if("p", READ)], True),
    ([_if("p", f"{WRITE}\n{READ}")], False),
])
def test_branches(lines: list[str], reads: bool) -> None:
    ops, buffer = _block(*lines)
    assert may_read_earlier_value(ops, buffer, Ranges()) is reads


FIRST = "%first = arith.cmpi eq, %i, %c0 : index"
SECOND = "%second = arith.cmpi eq, %i, %c1 : index"


@pytest.mark.parametrize(("lines", "reads"), [
    ([_for("c3", WRITE, READ)], False), ([_for("c3", READ, WRITE)], True),
    ([_for("c3", WRITE), READ], False),
    ([_for("m", WRITE), READ], False),  # a dimension is at least 1
    ([_for("m", WRITE, start="c1"), READ], False),  # the buffer is written either never or each time
    ([_for("m", WRITE, start="c1"), READ, _row("c0")], True),  # another statement writes the buffer, too
    ([_for("c8", _for("i", WRITE, name="j"), READ)], True),  # the first time never, and later each time
    ([_for("c8", _for("m", WRITE, name="j"), READ)], False),
    ([_for("c8", _row("i")), READ], False), ([_for("c7", _row("i")), READ], True),
    ([_for("c8", _row("i"), _row("i", read=True)), READ], False),
    ([_for("c8", _row("i"), _row("c0", read=True)), READ], True),
    ([_for("c8", _row("i", read=True), _row("i"))], True),
    ([_for("c8", _if("p", _row("i"), _row("i"))), READ], False),
    ([_for("c8", _if("p", _row("i"))), READ], True), ([_for("c8", _if("p", _row("i"), OTHER)), READ], True),
    ([_for("c3", FIRST, _if("first", WRITE), UPDATE)], False),  # the first iteration clears the buffer
    ([_for("c3", SECOND, _if("second", WRITE), UPDATE)], True),
    ([_for("c3", UPDATE)], True),
])
def test_loops(lines: list[str], reads: bool) -> None:
    ops, buffer = _block(*lines)
    assert may_read_earlier_value(ops, buffer, Ranges()) is reads


def _elements(rows: str, columns: str, row: str = "i", column: str = "j", *more: str) -> str:
    """Returns two loops that store single elements at ``[row, column]``."""
    return _for(rows, _for(columns, *more, f"memref.store %v, %x[%{row}, %{column}] : {M}", name="j"))


@pytest.mark.parametrize(("loops", "reads"), [
    (_elements("c8", "c6"), False), (_elements("c7", "c6"), True), (_elements("c8", "c5"), True),
    (_elements("c8", "c6", "i", "c0"), True), (_elements("c8", "c6", "c0", "j"), True),
    (_elements("c8", "m"), True),  # the number of columns is only known at run time
    (_elements("c8", "c6", "i", "j", LOAD), True),  # an element that is not written yet
    (_for("c8", _for("c6", _if("p", f"memref.store %v, %x[%i, %j] : {M}"), name="j")), True),
])
def test_single_elements_fill_a_buffer_only_if_all_are_stored(loops: str, reads: bool) -> None:
    """Stores of single elements were taken to fill the whole buffer, so that rows which the loops leave out were lost."""
    ops, buffer = _block(loops, READ)
    assert may_read_earlier_value(ops, buffer, Ranges()) is reads


@pytest.mark.parametrize(("condition", "reads"), [("first", False), ("second", True)])
def test_a_gemm_that_starts_its_accumulator_does_not_read_it(condition: str, reads: bool) -> None:
    a, c = (f"memref<16x16x{kind}, #hivm.address_space<{space}>>" for kind, space in (("f16", "cbuf"), ("f32", "cc")))
    module = parse_module(f"""func.func @k(%a: {a}, %x: {c}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      scf.for %i = %c0 to %c3 step %c1 {{
        {FIRST}
        {SECOND}
        tile.gemm %a, %a into %x init %{condition} : {a}, {a} into {c}
      }}
      return
    }}""")
    (gemm,) = [op for op in module.walk() if isinstance(op, tile.GemmOp)]
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    assert may_read_earlier_value([loop], gemm.operands[2], Ranges()) is reads


def _find_mark(ops: list[Operation]) -> Operation:
    """Returns the operation that fills ``%o``, which marks the position under test."""
    (mark,) = [op for outer in ops for op in outer.walk() if isinstance(op, tile.FillOp) and op.target.name_hint == "o"]
    return mark


@pytest.mark.parametrize(("lines", "dead"), [
    ([READ, OTHER], True), ([OTHER, READ], False), ([OTHER, WRITE, READ], True), ([OTHER, _row("c0"), READ], False),
    ([_for("c3", READ, OTHER)], False),  # the next iteration reads it
    ([_for("c3", WRITE, READ, OTHER)], True),
    ([_for("c3", WRITE, READ, OTHER), READ], False),  # a read after the loop
    ([_for("c3", WRITE, READ, OTHER), WRITE, READ], True),
    ([_for("c3", _for("c3", WRITE, READ, OTHER, name="j"))], True),
    ([_for("c3", READ, _for("c3", WRITE, READ, OTHER, name="j"))], False),  # the next iteration of the outer loop reads it
    ([_if("p", OTHER, READ)], True), ([_if("p", OTHER, READ), READ], False),
    ([f'tile.on_core "vector" {{\n{OTHER}\n}}', READ], False), ([f'tile.on_core "vector" {{\n{OTHER}\n}}'], True),
])
def test_a_value_that_is_never_read_again(lines: list[str], dead: bool) -> None:
    ops, buffer = _block(*lines)
    assert is_dead_after(_find_mark(ops), buffer, Ranges()) is dead


@pytest.mark.parametrize(("condition", "dead"), [("", True), (READ, False)])
def test_the_condition_of_a_while_loop_is_read_before_the_next_iteration(condition: str, dead: bool) -> None:
    ops, buffer = _block(f"scf.while () : () -> () {{\n{condition}\nscf.condition(%p)\n}} do {{\n{WRITE}\n{READ}\n{OTHER}\n"
                         "scf.yield\n}")
    assert is_dead_after(_find_mark(ops), buffer, Ranges()) is dead


def test_an_argument_is_never_dead() -> None:
    ops, _ = _block(OTHER)
    function = ops[0].parent_op()
    assert function is not None
    assert not is_dead_after(ops[0], function.regions[0].block.args[0], Ranges())


THIN = "memref<8x1xf32, strided<[6, 1]>, #hivm.address_space<ub>>"
COLUMN = f"%column = tile.region %x[0, 0] [8, 1] keep [0, 1] : {M} to {THIN}"
ACCUMULATE = f'tile.reduce "reduce_sum" accumulate ins(%o : {M}) outs(%column : {THIN}) dims = [1]'


@pytest.mark.parametrize(("lines", "own"), [
    ([_row("i"), _row("i", read=True)], True), ([_row("i", read=True), _row("i")], False),
    ([_row("i"), _row("c0", read=True)], False), ([WRITE, READ], True), ([WRITE, _row("i", read=True)], False),
    ([_if("p", _row("i"), _row("i")), _row("i", read=True)], True), ([_if("p", _row("i")), _row("i", read=True)], False),
    ([_if("p", _row("i"), OTHER), _row("i", read=True)], False),
    ([_row("i"), _if("p", _row("i", read=True))], False),  # the write is not in the reader's own block
    ([WRITE, UPDATE], True), ([UPDATE], False), ([OTHER], True),
    ([COLUMN, f"tile.fill %v into %column : f32 into {THIN}", ACCUMULATE], False)])  # one operand is both read and written
def test_reads_of_what_the_same_iteration_wrote(lines: list[str], own: bool) -> None:
    (loop,), buffer = _block(_for("c8", *lines))
    assert isinstance(loop, scf.ForOp)
    assert reads_only_own_writes(loop.body.block, buffer) is own


ROW_OF = f"tile.region %{{}}[%m, 0] [1, 6] keep [0, 1] : {M} to {ROW}"


@pytest.mark.parametrize(("one", "other", "same"), [
    ("arith.addi %m, %c1 : index", "arith.addi %m, %c1 : index", True),
    ("arith.addi %m, %c1 : index", "arith.addi %c1, %m : index", False),
    ("arith.addi %m, %c1 : index", "arith.addi %m, %c3 : index", False),
    ("arith.addi %m, %c1 : index", "arith.subi %m, %c1 : index", False),
    ("arith.constant 5 : index", "arith.constant 5 : index", True),
    ("arith.constant 5 : index", "arith.constant 6 : index", False),
    ("arith.cmpi slt, %m, %c1 : index", "arith.cmpi sle, %m, %c1 : index", False),
    (ROW_OF.format("x"), ROW_OF.format("x"), True), (ROW_OF.format("x"), ROW_OF.format("o"), False),
    (f"memref.load %x[%c0, %c0] : {M}", f"memref.load %x[%c0, %c0] : {M}", False),  # the element may change in between
])
def test_equal_pure_operations_give_the_same_value(one: str, other: str, same: bool) -> None:
    ops, _ = _block(f"%one = {one}\n%other = {other}")
    a, b = ops[0].results[0], ops[1].results[0]
    assert is_same_value(a, b) is same
    assert is_same_value(a, a)


def test_equal_values_are_found_through_a_chain_of_operations() -> None:
    ops, _ = _block("%a = arith.addi %m, %c1 : index", "%b = arith.addi %m, %c1 : index", "%c = arith.muli %a, %c3 : index",
                    "%d = arith.muli %b, %c3 : index", "%e = arith.muli %m, %c3 : index")
    assert is_same_value(ops[2].results[0], ops[3].results[0])
    assert not is_same_value(ops[2].results[0], ops[4].results[0])
