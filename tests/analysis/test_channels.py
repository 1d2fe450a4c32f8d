"""Channels between the cores: buffers that one kind of core writes and the other reads, from the roles of the accesses."""

from __future__ import annotations

import pytest
from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.channels import Channels, is_at_fixed_place, is_hand_over, is_private_workspace, is_scratch
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError

MEMORIES = {"gm": "#hivm.address_space<gm>", "l1": "#hivm.address_space<cbuf>", "l0c": "#hivm.address_space<cc>",
            "ub": "#hivm.address_space<ub>", "shared": "#tile.scope<shared>", "fragment": "#tile.scope<fragment>"}
KINDS = {name: f"memref<16x16xf32, {space}>" for name, space in MEMORIES.items()}
# the buffers and tensors of all kernels of this file, with their memories
PLACES = {"x": "gm", "s": "gm", "w": "gm", "l": "l1", "c": "l0c", "u": "ub", "a": "shared", "b": "shared", "v": "shared",
          "t": "shared", "acc": "fragment"}


def _kind(name: str) -> str:
    return KINDS[PLACES[name]]


def _copy(source: str, target: str, core: str = "") -> str:
    on = f" {{hivm.tcore_type = #hivm.tcore_type<{core}>}}" if core else ""
    return f"tile.copy %{source} to %{target}{on} : {_kind(source)} to {_kind(target)}"


def _exp(source: str, target: str) -> str:
    return f'tile.elementwise "exp" ins(%{source} : {_kind(source)}) outs(%{target} : {_kind(target)})'


def _fill(target: str) -> str:
    return f"tile.fill %f into %{target} : f32 into {_kind(target)}"


def _gemm(left: str, right: str, into: str = "acc") -> str:
    return f"tile.gemm %{left}, %{right} into %{into} init %p : {_kind(left)}, {_kind(right)} into {_kind(into)}"


class _Kernel:
    """A kernel of given statements, with its buffers and tensors by name."""

    def __init__(self, *lines: str):
        module = parse_module("\n".join([
            f"func.func @k(%x: {KINDS['gm']}, %s: {KINDS['gm']} {{tile.scratch}}, "
            f"%w: {KINDS['gm']} {{tile.scratch, tile.workspace}}, %f: f32, %p: i1) {{",
            "%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index", "%c4 = arith.constant 4 : index",
            *(f'%{name} = tile.alloc "{name}" : {KINDS[place]}' for name, place in PLACES.items() if place != "gm"),
            *lines, "return", "}"]))
        (self.function,) = [op for op in module.walk() if isinstance(op, func.FuncOp)]
        arguments = self.function.body.block.args
        self.values: dict[str, SSAValue] = {value.name_hint or "": value for value in arguments[:3]}
        ops = list(self.function.body.block.ops)
        self.values |= {op.label.data: op.result for op in ops if isinstance(op, tile.AllocOp)}
        last = max(number for number, op in enumerate(ops) if isinstance(op, tile.AllocOp))
        self.statements: list[Operation] = ops[last + 1:-1]

    def names(self, values: set[SSAValue]) -> set[str]:
        return {name for name, value in self.values.items() if value in values}

    def channels(self, *, tensors: bool = True) -> Channels:
        return Channels(self.function, tensors=tensors)

    def loops(self) -> list[scf.ForOp]:
        return [op for op in self.function.walk() if isinstance(op, scf.ForOp)]


@pytest.mark.parametrize(("lines", "found"), [
    ([_exp("v", "a"), _gemm("a", "b")], {"a"}),  # vector work makes the left operand
    ([_exp("v", "a"), _exp("a", "t")], set()),  # one core
    ([_copy("x", "a"), _gemm("a", "b")], set()),  # the Cube core loads it itself
    ([_exp("v", "t"), _copy("t", "a"), _gemm("a", "b")], {"a"}),
    ([_gemm("a", "b"), _exp("acc", "t")], {"acc"}),
    ([_gemm("a", "b"), _copy("acc", "t"), _exp("t", "v")], {"t"}),  # the Cube core itself copies acc
    ([_gemm("a", "b"), _copy("acc", "x")], set()),
    ([_exp("v", "acc"), _gemm("a", "b")], set())])  # an accumulator is no value that the Cube core receives
def test_buffers_are_channels_where_one_core_writes_and_the_other_reads(lines: list[str], found: set[str]) -> None:
    kernel = _Kernel(*lines)
    assert kernel.names(kernel.channels(tensors=False).found) == found


@pytest.mark.parametrize(("lines", "found"), [
    ([_copy("c", "s"), _copy("s", "u")], {"s"}),
    ([_copy("u", "x"), _copy("x", "l")], {"x"}),
    ([_copy("u", "s"), _copy("s", "u")], set()),  # one core
    ([_copy("c", "s"), _copy("u", "s"), _copy("s", "u")], set()),  # both write
    ([_copy("c", "s")], set())])
def test_tensors_are_channels_if_asked_for(lines: list[str], found: set[str]) -> None:
    kernel = _Kernel(*lines)
    assert kernel.names(kernel.channels().found) == found
    assert kernel.channels(tensors=False).found == set()


def test_tensors_are_no_channels_where_the_author_sets_flags_between_the_cores() -> None:
    flag = "hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_MTE2>] flag = 0"
    kernel = _Kernel(_copy("c", "s"), flag, _copy("s", "u"), _exp("v", "a"), _gemm("a", "b"))
    assert kernel.names(kernel.channels().found) == {"a"}


def test_cores_of_statements_are_those_that_surely_execute_them() -> None:
    kernel = _Kernel(
        _exp("v", "t"), _gemm("a", "b"), _copy("x", "l"), _copy("s", "u"), _copy("c", "s"), _copy("t", "a"),
        "scf.for %k = %c0 to %c4 step %c1 {", _exp("v", "t"), _copy("c", "s"), "}")
    channels = kernel.channels()
    assert [set(channels.cores_of(op)) for op in kernel.statements] == [
        {"AIV"}, {"AIC"}, {"AIC"}, {"AIV"}, {"AIC"}, set(), {"AIV", "AIC"}]


@pytest.mark.parametrize(("lines", "found"), [
    ([_copy("s", "u"), _copy("c", "s")], {"s"}),
    ([_copy("c", "s"), _copy("s", "u")], set()),
    ([_copy("s", "u"), "scf.if %p {", _copy("c", "s"), "}"], {"s"}),
    (["scf.if %p {", _copy("c", "s"), "}", _copy("s", "u")], set()),
    ([_gemm("a", "b"), _exp("v", "a")], {"a"}),
    ([_exp("t", "v"), _fill("t")], set())])  # no channel
def test_channels_of_a_loop_that_are_read_above_their_write(lines: list[str], found: set[str]) -> None:
    kernel = _Kernel("scf.for %k = %c0 to %c4 step %c1 {", *lines, "}")
    (loop,) = kernel.loops()
    assert kernel.names(kernel.channels().read_before_written(loop.body.block)) == found


def test_a_channel_that_the_loop_only_reads_is_not_read_before_written() -> None:
    kernel = _Kernel(_copy("c", "s"), "scf.for %k = %c0 to %c4 step %c1 {", _copy("s", "u"), "}")
    (loop,) = kernel.loops()
    channels = kernel.channels()
    assert kernel.names(channels.found) == {"s"}
    assert channels.read_before_written(loop.body.block) == set()


def test_writes_outside_of_operations() -> None:
    kernel = _Kernel("scf.for %i = %c0 to %c4 step %c1 {", _copy("c", "s"), "}",
                     "scf.for %j = %c0 to %c4 step %c1 {", _copy("s", "u"), "}")
    writer, reader = kernel.loops()
    channels, s = kernel.channels(), kernel.values["s"]
    assert channels.is_written_outside(s)
    assert channels.is_written_outside(s, reader)
    assert not channels.is_written_outside(s, writer)
    assert not channels.is_written_outside(s, reader, writer)


def test_hand_overs_are_workspaces_and_buffers_into_which_the_other_core_copies() -> None:
    kernel = _Kernel(_copy("u", "l", "VECTOR"), _copy("c", "u", "CUBE"))
    assert {name: is_hand_over(kernel.values[name]) for name in "xsluc"} == {
        "x": True, "s": True, "l": True, "u": True, "c": False}
    with pytest.raises(TileError) as caught:
        is_hand_over(_Kernel(_copy("u", "l")).values["l"])
    assert caught.value.code == "T294"
    own = _Kernel(_copy("x", "l", "CUBE"), _copy("x", "u", "VECTOR"))
    assert not is_hand_over(own.values["l"])
    assert not is_hand_over(own.values["u"])


def _rows(name: str, row: str) -> str:
    return (f"%{name} = tile.region %s[{row}, 0] [4, 16] keep [0, 1] : {KINDS['gm']} to "
            "memref<4x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>")


@pytest.mark.parametrize(("lines", "outer", "inner"), [
    ([_rows("r", "%row")], True, True),  # from above both loops
    ([_rows("r", "%i")], False, True),
    ([_rows("r", "%j")], True, False),  # all of the inner loop's rows in each iteration of the outer one
    (["%n = arith.addi %i, %j : index", _rows("r", "%n")], False, False),
    (["%n = arith.addi %row, %c1 : index", _rows("r", "%n")], True, True)])
def test_a_place_is_fixed_if_no_offset_depends_on_the_loop(lines: list[str], outer: bool, inner: bool) -> None:
    part = "memref<4x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>"
    kernel = _Kernel("%row = arith.addi %c1, %c1 : index", "scf.for %i = %c0 to %c4 step %c1 {",
                     "scf.for %j = %c0 to %c4 step %c1 {", *lines, f"tile.fill %f into %r : f32 into {part}", "}", "}")
    around, within = kernel.loops()
    assert is_at_fixed_place(kernel.values["s"], around) is outer
    assert is_at_fixed_place(kernel.values["s"], within) is inner
    assert is_at_fixed_place(kernel.values["x"], around)  # nothing accesses it


def test_a_place_that_depends_on_bounds_of_the_inner_loop_depends_on_what_these_do() -> None:
    part = "memref<4x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>"
    kernel = _Kernel("scf.for %i = %c0 to %c4 step %c1 {", "scf.for %j = %i to %c4 step %c1 {", _rows("r", "%j"),
                     f"tile.fill %f into %r : f32 into {part}", "}", "}")
    assert not is_at_fixed_place(kernel.values["s"], kernel.loops()[0])


def test_attributes_of_arguments_say_what_is_scratch_and_whose_workspace() -> None:
    kernel = _Kernel()
    assert {name: (is_scratch(kernel.values[name]), is_private_workspace(kernel.values[name])) for name in "xswu"} == {
        "x": (False, False), "s": (True, False), "w": (True, True), "u": (False, False)}
