"""The statements of a loop's body: the values that they access, the numbers of these values, and the scalars they need."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.ir import Operation

from tilelang_npu.analysis.loop_body import (
    LoopBody,
    StoredValue,
    core_within,
    find_stale_scalar,
    is_statement,
    loop_body_of,
    scalar_loads_for,
    statement_of,
)
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError

GM, UB = "memref<64xf32, #hivm.address_space<gm>>", "memref<64xf32, #hivm.address_space<ub>>"
NUMBERS = "memref<4xindex, #hivm.address_space<ub>>"


def _alloc(name: str) -> str:
    return f'%{name} = tile.alloc "{name}" : {UB}'


def _load(name: str) -> str:
    return f"tile.copy %X to %{name} : {GM} to {UB}"


def _store(name: str) -> str:
    return f"tile.copy %{name} to %Y : {UB} to {GM}"


def _exp(source: str, target: str) -> str:
    return f'tile.elementwise "exp" ins(%{source} : {UB}) outs(%{target} : {UB})'


def _loop(*body: str, before: str = "", after: str = "") -> scf.ForOp:
    """Returns the first loop of a function; its buffers ``%x``, ``%y`` and ``%numbers`` are allocated before the loop."""
    lines = "\n".join(body)
    module = parse_module(f"""func.func @k(%X: {GM}, %Y: {GM}, %p: i1, %v: f32, %k: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      {_alloc('x')}
      {_alloc('y')}
      %numbers = tile.alloc "numbers" : {NUMBERS}
      {before}
      scf.for %i = %c0 to %c4 step %c1 {{
        {lines}
      }}
      {after}
      return
    }}""")
    return next(op for op in module.walk() if isinstance(op, scf.ForOp))


def _body(loop: scf.ForOp) -> LoopBody:
    statements = [statement_of(op, "AIV") for op in loop.body.block.ops if is_statement(op)]
    return loop_body_of(loop, statements, Ranges())


def _names(values: object) -> list[str]:
    """Returns values as the buffer's name and the value's number: ``x0``, ``x1``."""
    return [f"{value.root.name_hint}{value.number}" for value in values]  # type: ignore[attr-defined]


def _accesses(body: LoopBody) -> list[str]:
    return [f"{' '.join(_names(each.reads))} -> {' '.join(_names(each.writes))}" for each in body.statements]


def test_scalars_allocations_and_the_terminator_are_no_statements() -> None:
    loop = _loop(_alloc("z"), "%n = memref.load %numbers[%c0] : " + NUMBERS, "%m = arith.addi %n, %i : index", _load("z"),
                 "memref.store %m, %numbers[%c1] : " + NUMBERS, f"scf.if %p {{\n{_store('z')}\n}}")
    assert [op.name for op in loop.body.block.ops if is_statement(op)] == ["tile.copy", "memref.store", "scf.if"]


def test_a_statement_reads_what_its_operations_and_its_scalars_read() -> None:
    loop = _loop("%n = memref.load %numbers[%c0] : " + NUMBERS, "%more = arith.cmpi slt, %n, %i : index",
                 f"scf.if %more {{\n{_load('x')}\n{_exp('x', 'y')}\n}}")
    (statement,) = _body(loop).statements
    assert _names(statement.reads) == ["numbers0", "X0", "x0"]
    assert _names(statement.writes) == ["x0", "y0"]
    assert _names(statement.accessed) == ["numbers0", "X0", "x0", "y0"]
    assert statement.core == "AIV"


CHAIN = (_load("x"), _exp("x", "y"), _store("y"))


def test_conflicts_are_the_values_that_one_of_two_writes() -> None:
    load, exp, store = _body(_loop(*CHAIN)).statements
    assert _names(load.conflicts_with(exp)) == _names(exp.conflicts_with(load)) == ["x0"]
    assert _names(exp.conflicts_with(store)) == ["y0"]
    assert not load.conflicts_with(store)
    first, second = _body(_loop(_exp("x", "y"), _store("x"))).statements
    assert not first.conflicts_with(second)  # both only read x


@pytest.mark.parametrize(("body", "after", "accesses", "own"), [
    (CHAIN, "", ["X0 -> x0", "x0 -> y0", "y0 -> Y0"], ["x0", "y0"]),
    # The second load begins a new value of x, the second exponential one of y.
    ((*CHAIN, *CHAIN), "", ["X0 -> x0", "x0 -> y0", "y0 -> Y0", "X0 -> x1", "x1 -> y1", "y1 -> Y0"], ["x0", "x1", "y0", "y1"]),
    ((_load("x"), _exp("x", "x"), _store("x")), "", ["X0 -> x0", "x0 -> x0", "x0 -> Y0"], ["x0"]),
    # A value that survives: y is read before it is written, or read after the loop.
    ((_load("x"), _store("y"), _exp("x", "y"), _exp("x", "y")), "", ["X0 -> x0", "y0 -> Y0", "x0 -> y0", "x0 -> y0"], ["x0"]),
    (CHAIN, _store("x"), ["X0 -> x0", "x0 -> y0", "y0 -> Y0"], ["y0"]),
    (CHAIN, f"{_load('x')}\n{_store('x')}", ["X0 -> x0", "x0 -> y0", "y0 -> Y0"], ["x0", "y0"]),
    ((_load("x"), f"scf.if %p {{\n{_load('x')}\n}}", _store("x")), "", ["X0 -> x0", "X0 -> x0", "x0 -> Y0"], ["x0"]),
])
def test_the_successive_values_of_an_iteration(body: tuple[str, ...], after: str, accesses: list[str], own: list[str]) -> None:
    found = _body(_loop(*body, after=after))
    assert _accesses(found) == accesses
    assert sorted(_names(found.own)) == own
    assert all(found.own[value].result is value.root for value in found.own)


def test_a_buffer_of_the_body_is_its_own_even_if_it_is_read_first() -> None:
    found = _body(_loop(_alloc("z"), _store("z"), _load("z")))
    assert _accesses(found) == ["z0 -> Y0", "X0 -> z0"]
    assert _names(found.own) == ["z0"]


def test_a_buffer_at_an_address_of_the_authors_is_not_its_own() -> None:
    loop = _loop(*(line.replace("%x", "%z") for line in CHAIN), before=f'%z = tile.alloc "z" at 512 : i64 : {UB}')
    assert _names(_body(loop).own) == ["y0"]


def test_a_buffer_whose_elements_the_body_loads_has_one_value() -> None:
    fill = f"tile.fill %c1 into %numbers : index into {NUMBERS}"
    load = f"%n{{}} = memref.load %numbers[%c0] : {NUMBERS}"
    put = "memref.store %n{0}, %numbers[%c1] : " + NUMBERS
    found = _body(_loop(fill, load.format(0), put.format(0), fill, load.format(1), put.format(1)))
    assert {value for each in found.statements for value in each.accessed} == {StoredValue(found.statements[0].op.operands[1])}
    assert not found.own


NEEDED = f"%n = memref.load %numbers[%c0] : {NUMBERS}"
NEXT = "%next = arith.addi %n, %i : index"
CHANGE = "memref.store %k, %numbers[%c1] : " + NUMBERS
USE = f"memref.store %v, %x[%next] : {UB}"


def _last_statement(loop: scf.ForOp) -> Operation:
    return [op for op in loop.body.block.ops if is_statement(op)][-1]


def test_the_loads_on_which_an_operation_depends() -> None:
    loop = _loop(NEEDED, NEXT, f"%other = memref.load %numbers[%i] : {NUMBERS}", f"scf.if %p {{\n{USE}\n}}")
    assert [load.results[0].name_hint for load in scalar_loads_for(_last_statement(loop))] == ["n"]
    inner = next(op for op in _last_statement(loop).walk() if op.name == "memref.store")
    assert scalar_loads_for(inner) == []  # the load is in another block


def test_a_load_whose_index_is_loaded_brings_both_loads() -> None:
    loop = _loop(NEEDED, f"%next = memref.load %numbers[%n] : {NUMBERS}", USE)
    assert {load.results[0].name_hint for load in scalar_loads_for(_last_statement(loop))} == {"n", "next"}


@pytest.mark.parametrize(("body", "stale"), [
    ((NEEDED, NEXT, USE), False), ((CHANGE, NEEDED, NEXT, USE), False), ((NEEDED, NEXT, CHANGE, USE), True),
    ((NEEDED, CHANGE, NEXT, USE), True),
    ((NEEDED, NEXT, f"scf.if %p {{\n{CHANGE}\n}}", USE), True),
    ((NEEDED, NEXT, _load("x"), USE), False),  # another buffer is written
    ((NEEDED, NEXT, CHANGE, _load("x")), False),  # the operation needs no scalar
])
def test_a_scalar_whose_memory_is_written_before_its_use(body: tuple[str, ...], stale: bool) -> None:
    found = find_stale_scalar(_last_statement(_loop(*body)))
    assert (found is not None) is stale
    assert found is None or found.results[0].name_hint == "n"


VECTOR, CUBE, EITHER = ("{hivm.tcore_type = #hivm.tcore_type<" + core + ">} " for core in ("VECTOR", "CUBE", "CUBE_OR_VECTOR"))


def _on(core: str, line: str) -> str:
    return line.replace(" : ", f" {core}: ", 1)


@pytest.mark.parametrize(("body", "core"), [
    ([_on(VECTOR, _load("x"))], "AIV"), ([_on(CUBE, _load("x"))], "AIC"), ([_on(EITHER, _load("x"))], None),
    ([_on(VECTOR, _load("x")), "%s = arith.addi %i, %c1 : index", _on(VECTOR, _store("x"))], "AIV"),
    ([_on(VECTOR, _load("x")), _on(CUBE, _store("x"))], None),
    ([_on(VECTOR, _load("x")), _on(EITHER, _store("x"))], None),
    ([], None),
    ([f'tile.on_core "vector" {{\n{_on(VECTOR, _load("x"))}\n}}'], None),  # the author chose the order
    ([_on(VECTOR, _load("x")), "hivm.hir.pipe_barrier[<PIPE_ALL>]"], None),
])
def test_the_one_core_of_nested_operations(body: list[str], core: str | None) -> None:
    loop = _loop("scf.if %p {\n" + "\n".join(body) + "\n}")
    (branch,) = [op for op in loop.body.block.ops if isinstance(op, scf.IfOp)]
    assert core_within(branch) == core


def test_an_operation_without_a_core_is_refused() -> None:
    loop = _loop(_load("x"))
    with pytest.raises(TileError) as caught:
        core_within(_last_statement(loop))
    assert caught.value.code == "T294"
