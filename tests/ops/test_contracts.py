"""Invalid operands are an error at the user's line, with the names of both dialects, for every operation of the table.

The calls are generated from the table (``surface``); a new operation of the table is tested without further lines.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from ops import surface
from ops.surface import ALL_TYPES, Call
from tilelang_npu import ops
from tilelang_npu.frontend import trace
from tilelang_npu.ops import dtype

ENTRIES = [pytest.param(entry, name, id=name) for entry, name in surface.covered()]
OPERANDS = ("T110", "T111", "T131", "T145")


def legal_call(entry: ops.Operation, name: str) -> Call:
    return surface.example(name, entry, surface.first_type(entry, name))


def test_every_operation_is_covered(source: Any) -> None:
    """Each entry can be called by each of its names; those that no function has are the ones with several destinations."""
    for entry in ops.operations().values():
        names = surface.names(entry)
        apart = (isinstance(entry, ops.PeerMove) or getattr(entry, "outputs", 1) == 2
                 or entry.name in ("pack_int4", "unpack_int4"))  # T.tile.cast and T.vcast, tests/language/test_int4.py
        assert names or apart, f"there is no call of {entry.name}: see tests/ops/surface.py"
        for name in names:
            call = legal_call(entry, name)
            trace(source(surface.kernel_text([*call.allocations(), call.statement])).main, dialect=surface.dialect_of(name))


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_names_mean_the_same(source: Any, entry: ops.Operation, name: str) -> None:
    """Every further name of an operation makes the same op as the main name of its dialect."""
    others = [other for other in surface.names(entry) if surface.dialect_of(other) == surface.dialect_of(name)]

    def made(which: str) -> list[str]:
        call = legal_call(entry, which)
        main = source(surface.kernel_text([*call.allocations(), call.statement])).main
        traced = trace(main, dialect=surface.dialect_of(which))
        return [str(op) for op in traced.module.walk() if op.name in ("tile.elementwise", "tile.reduce", "tile.call")]

    expected = made(name)
    assert len(expected) == 1
    for other in others:
        assert made(other) == expected, other


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_element_types(refusal: Any, entry: ops.Operation, name: str) -> None:
    """Each element type that the entry does not have is an error, and the advice lists the valid types."""
    dialect = surface.dialect_of(name)
    for element in ALL_TYPES:
        converted = isinstance(entry, ops.Reduce) and str(element).startswith("float8")  # tests/language/test_float8_reductions
        if surface.is_legal(entry, element, dialect) or (converted and dialect == "npuir"):
            continue
        call = surface.example(name, entry, element)
        if element == "int4":  # the advice names what takes it; buffers of odd rows are refused where they are allocated
            if entry.name != "cast" and all(shape[-1] % 2 == 0 for shape, kind in call.buffers.values() if kind == element):
                refusal(call.allocations(), call.statement, dialect, codes=["T110"], mentions=["int4"])
            continue
        refused = refusal(call.allocations(), call.statement, dialect, codes=["T110"], mentions=[str(element), "d "])
        assert all(kind in refused.help for kind in entry.dtypes), str(refused)


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_element_types_that_differ(refusal: Any, entry: ops.Operation, name: str) -> None:
    """One operand of another element type than the others is refused."""
    call = legal_call(entry, name)
    dialect = surface.dialect_of(name)
    own = call.buffers["d"][1]
    for place in (*call.alike, "d"):
        if len(call.buffers) == 1 or (place == "d" and (getattr(entry, "result", "same") == "any" or not call.alike)):
            continue
        if place in call.alike and len(call.alike) == 1 and getattr(entry, "result", "same") != "same":
            continue  # the only input of an operation with its own result type fixes the type
        for other in (dtype("int16"), dtype("float16"), dtype("float32"), dtype("uint8")):
            old = call.buffers[place][1]
            summed = isinstance(entry, ops.Reduce) and place == "a" and str(other) == "float16"  # npuir sums f16 into f32
            widened = entry.name == "axpy" and place == "a" and (str(other), str(own)) == ("float16", "float32")
            if other == old or (place == "d" and other == own) or summed or widened:
                continue
            changed = call.changed(place, element=other)
            refusal(changed.allocations(), call.statement, dialect, codes=["T110"], mentions=[str(other)])


REDUCTIONS = [op.name for op in ops.operations().values() if op.name.startswith("reduce_")]
# Buffers whose size an operation does not fix, because it works on as many elements as there are.
FREE: dict[str, set[str]] = {
    "gather": {"a"}, "arange": {"d"}, "arith_progression": {"d"}, "gather_offsets": {"a", "i", "d"}, "gather_mask": {"a", "d"},
    "sort": {"a", "d"}, "topk": {"a", "d"}, "merge_sort": {"d"}, "sort32": {"d", "i"}, "compare_bits": {"d"},
    "mrgsort": {"a", "b", "d"}, "vsort32": {"a", "i", "d"},
    "select_bits": {"m"},
    **{name: {"a"} for name in REDUCTIONS},
    **{name: {"a", "b", "i", "m", "d"} for name in surface.BY_REPEATS},
}
SHORT: dict[str, set[str]] = {  # of these, those that may have too few elements as well
    "gather": {"a"}, "arange": {"d"}, "gather_offsets": {"a", "i", "d"}, "gather_mask": {"a"}, "topk": {"a"},
    "mrgsort": {"a", "b", "d"},
    **{name: {"a"} for name in REDUCTIONS},
    "gatherb": {"a", "d"}, "brcb": {"d"}, "bilinear_interpolation": {"a", "b"}, "gather_bits": {"a", "m", "d"},
    "fill_bits": {"d"},
    **{f"whole_reduce_{mode}": {"a"} for mode in ("sum", "max", "min")},
}


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_shapes(refusal: Any, entry: ops.Operation, name: str) -> None:
    """An operand with one element too many or too few along an axis, or with another axis, is refused with both shapes."""
    call = legal_call(entry, name)
    for place, (shape, _) in call.buffers.items():
        wrong = [] if place in FREE.get(name, FREE.get(entry.name, ())) else [
            (*shape[:-1], shape[-1] + 1), (shape[0] + 1, *shape[1:]), (2, *shape), (*shape, 2)]
        if place not in SHORT.get(entry.name, ()) and shape[-1] > 1:
            wrong.append((*shape[:-1], shape[-1] - 1))
        if entry.name == "topk" and place == "a":
            wrong.append((7,))
        for other in wrong:
            changed = call.changed(place, shape=other)
            mentions = [", ".join(map(str, other))] if len(call.buffers) > 1 else []
            refusal(changed.allocations(), call.statement, surface.dialect_of(name), codes=OPERANDS, mentions=mentions)


@pytest.mark.parametrize(("entry", "name"), [case for case in ENTRIES if isinstance(case.values[0], ops.Elementwise)])
def test_broadcasts(source: Any, refusal: Any, entry: ops.Elementwise, name: str) -> None:
    """An input of size 1 is broadcast if the entry allows it, otherwise it is an error; a destination is never broadcast."""
    call, dialect = legal_call(entry, name), surface.dialect_of(name)
    for shape in ((4, 1), (1, 8), (1, 1)):
        changed = call.changed("d", shape=shape)
        refusal(changed.allocations(), call.statement, dialect, codes=["T111"], mentions=["4, 8", ", ".join(map(str, shape))])
        for place in call.sized:
            changed = call.changed(place, shape=shape)
            if entry.broadcast:
                trace(source(surface.kernel_text([*changed.allocations(), call.statement])).main, dialect=dialect)
            else:
                refusal(changed.allocations(), call.statement, dialect, codes=["T111"], mentions=["the shapes must be equal"])


def substituted(statement: str, names: dict[str, str]) -> str:
    """The statement with other texts for some of its buffers."""
    return re.sub(r"(?<![\w.'])(" + "|".join(names) + r")(?![\w.('])", lambda found: names[found.group(1)], statement)


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_operands_that_are_one_buffer(source: Any, refusal: Any, entry: ops.Operation, name: str) -> None:
    """The destination may be an input if the entry allows it; otherwise that is an error."""
    call, dialect = legal_call(entry, name), surface.dialect_of(name)
    for position, place in enumerate(call.buffers):
        if place == "d" or call.buffers[place] != call.buffers["d"]:
            continue
        statement = substituted(call.statement, {"d": place})
        allowed = isinstance(entry, (ops.Elementwise, ops.Structured)) and entry.in_place
        if isinstance(entry, ops.Composite):
            allowed = position == 0
        if entry.name == "deinterleave":
            allowed = False  # both are destinations
        if allowed:
            trace(source(surface.kernel_text([*call.allocations(), statement])).main, dialect=dialect)
        else:
            refusal(call.allocations(), statement, dialect, codes=["T112"], mentions=[f"{place} ["])


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_operands_that_overlap(refusal: Any, entry: ops.Operation, name: str) -> None:
    """A destination that shares some elements with an input, but not all, is refused."""
    call = legal_call(entry, name)
    target, element = call.buffers["d"]
    for place, (shape, kind) in call.buffers.items():
        if place == "d" or kind != element or len(shape) != len(target):
            continue
        whole = tuple(a + b for a, b in zip(shape, target, strict=True))
        source_part = "w[" + ", ".join(f"0:{size}" for size in shape) + "]"
        target_part = "w[" + ", ".join(f"1:{size + 1}" if size > 1 else "0:1" for size in target) + "]"
        statement = substituted(call.statement, {"d": target_part, place: source_part})
        lines = [*call.allocations(), f"w = T.alloc_ub({whole}, {str(kind)!r})"]
        refusal(lines, statement, surface.dialect_of(name), codes=["T112"], mentions=["w ["])


def arguments(statement: str) -> list[str]:
    inside = statement[statement.index("(") + 1:-1]
    return re.split(r", (?![^\[]*\])", inside)


OPTIONAL = {*REDUCTIONS, "cumsum", "cummax", "transpose", "vtranspose", "npuir_transpose", "arange", "tile.arith_progression",
            "tile.gather", "bitwise_rshift", "vmrgsort"}
"""Names whose last argument in the calls here may be left out."""


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_number_of_operands(refusal: Any, entry: ops.Operation, name: str) -> None:
    """Too few or too many operands, and unknown keywords, are errors."""
    call, dialect = legal_call(entry, name), surface.dialect_of(name)
    given = arguments(call.statement)
    lines = call.allocations()
    if name not in OPTIONAL:
        refusal(lines, f"T.{name}({', '.join(given[:-1])})", dialect, codes=OPERANDS)
    refusal(lines, f"T.{name}()", dialect, codes=["T145"])
    if len(given) > 1 and name not in ("cumsum", "cummax"):
        refusal(lines, f"T.{name}({given[0]})", dialect, codes=["T145"])
    refusal(lines, f"T.{name}({', '.join([*given, 'nonsense=1'])})", dialect, codes=["T145"])
    plain = [argument.partition("=")[2] or argument for argument in given]
    refusal(lines, f"T.{name}({', '.join([*plain, 'd', 'd', 'd'])})", dialect, codes=OPERANDS)


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_kinds_of_operands(refusal: Any, entry: ops.Operation, name: str) -> None:
    """An operand that is not a buffer is an error, also a number if the entry does not accept scalars."""
    call, dialect = legal_call(entry, name), surface.dialect_of(name)
    for position, place in enumerate(call.buffers):
        scalar = isinstance(entry, ops.Elementwise) and place != "d" and position in entry.scalar
        scalar = scalar or (entry.name in ("compare_bits", "select_bits") and place == "b")
        values = ["None", "'text'", *([] if scalar else ["1.5", "cid"])]
        if (entry.name, place) in (("cumsum", "d"), ("cummax", "d")):
            values.remove("None")  # in place
        lines = [line for line in call.allocations() if not line.startswith(f"{place} =")]
        for value in values:
            statement = substituted(call.statement, {place: value})
            refusal(lines, statement, dialect, codes=["T110", "T140", "T141", "T144", "T145"])


@pytest.mark.parametrize(("entry", "name"), ENTRIES)
def test_memories(refusal: Any, entry: ops.Operation, name: str) -> None:
    """A vector operation on a buffer outside of UB is an error, with the buffer's name, shape and memory."""
    call, dialect = legal_call(entry, name), surface.dialect_of(name)
    for place, (shape, kind) in call.buffers.items():
        rest = [line for line in call.allocations() if not line.startswith(f"{place} =")]
        described = f"{place} [{', '.join(map(str, shape))}] {kind}"
        for function, memory in (("alloc_L1", "L1"), ("alloc_L0C", "L0C")):
            line = f"{place} = T.{function}({shape}, {str(kind)!r})"
            refusal([*rest, line], call.statement, dialect, codes=["T201"], mentions=[described, f"is in {memory}"])
        refusal(rest, call.statement, dialect, codes=["T201"], mentions=[described, "is in GM"],
                parameters=f"{place}: T.Tensor({shape}, {str(kind)!r})")


INTEGER_SCALARS = [("0.5", "int32"), ("2**40", "int32"), ("-129", "int8"), ("300", "int8"), ("float('inf')", "int32"),
                   ("float('nan')", "int16"), ("T.infinity('float32')", "int32"), ("-1", "uint8"), ("2", "bool"),
                   ("0.5", "bool")]


@pytest.mark.parametrize(("entry", "name"), [
    case for case in ENTRIES if isinstance(case.values[0], ops.Elementwise) and case.values[0].scalar])
def test_scalars_that_the_type_does_not_have(refusal: Any, entry: ops.Elementwise, name: str) -> None:
    """A scalar must be a value of the other operand's element type; it is not wrapped or truncated."""
    dialect = surface.dialect_of(name)
    for value, kind in INTEGER_SCALARS:
        if not surface.is_legal(entry, dtype(kind), dialect):
            continue
        call = surface.example(name, entry, dtype(kind))
        for position in entry.scalar:
            place = "abc"[position]
            rest = [line for line in call.allocations() if not line.startswith(f"{place} =")]
            statement = substituted(call.statement, {place: value})
            refusal(rest, statement, dialect, codes=["T110"], mentions=[kind, "does not have"])


BUFFERS = ["a = T.alloc_ub((4, 8), 'float32')", "b = T.alloc_ub((4, 8), 'float32')", "d = T.alloc_ub((4, 8), 'float32')",
           "i = T.alloc_ub((4, 8), 'int32')", "h = T.alloc_ub((4, 8), 'float16')", "col = T.alloc_ub((4, 1), 'float32')",
           "mask = T.alloc_ub((4, 8), 'bool')", "u = T.alloc_ub((4, 8), 'uint8')", "line = T.alloc_ub((32,), 'float32')",
           "pairs = T.alloc_ub((64,), 'float32')", "row = T.alloc_ub((1, 8), 'float32')",
           "wide = T.alloc_ub((4, 16), 'float32')", "idx = T.alloc_ub((32,), 'int32')", "long = T.alloc_ub((128,), 'float32')"]


@pytest.mark.parametrize(("statement", "code", "problem"), [
    ("T.flip(a, d, 0)", "T111", "axis 0"),
    ("T.flip(a, d, 2)", "T111", "axis is 2, but the shape has 2 axes"),
    ("T.cumsum(a, d, dim=2)", "T111", "dim is 2, but the shape has 2 axes"),
    ("T.cumsum(a, d, dim=True)", "T111", "dim is True"),
    ("T.vtranspose(a, d, [0, 0])", "T111", "is not a permutation of 2 axes"),
    ("T.vtranspose(a, d, [0, 1])", "T111", "moves no axis"),
    ("T.vtranspose(a, d, [1])", "T111", "is not a permutation of 2 axes"),
    ("T.vtranspose(a, d, ['x', 'y'])", "T145", "permutation"),
    ("T.vtranspose(a, d, 1)", "T145", "permutation"),
    ("T.arange(i, [1])", "T111", "1 strides for a destination with 2 axes"),
    ("T.arange(i, [1, 0.5])", "T145", "0.5, not an integer"),
    ("T.npuir_concat(a, b, wide, 2)", "T111", "dim is 2, but the shape has 2 axes"),
    ("T.npuir_interleave(a, b, wide, channel_nums=3)", "T145", "3 channels"),
    ("T.deinterleave(wide, a, b, index_mode='CHANNEL_0')", "T145", "2 destinations with index_mode 'CHANNEL_0'"),
    ("T.deinterleave(wide, a, index_mode='CHANNEL_2')", "T145", "CHANNEL_2"),
    ("T.npuir_pad(a, wide, 0, [0, -4], [0, 12])", "T145", "-4"),
    ("T.npuir_pad(a, wide, 0, [0, 0.5], [0, 7.5])", "T145", "0.5, not an integer"),
    ("T.npuir_pad(a, wide, 0, [0], [8])", "T111", "1 widths before and 1 after; the source has 2 axes"),
    ("T.npuir_pad(i, d, 0, [0, 4], [0, 4])", "T110", "element types differ"),
    ("T.npuir_pad(i, i, 0.5, [0, 0], [0, 0])", "T110", "0.5, which int32 does not have"),
    ("T.vsort(a, d, i, sort_axis=0)", "T111", "axis 0 is not the last axis"),
    ("T.vsort(a, d, line)", "T110", "the destination of the indices has elements of float32"),
    ("T.npuir_sort(a, d, i[:, 0:4])", "T111", "source and destination"),
    ("T.vsort(a, d, i, descending='no')", "T145", "descending is 'no'"),
    ("T.vsort(i, i, i)", "T110", "does not work on int32"),
    ("T.vsort32(line, i, pairs)", "T111", "i [4, 8] int32 has 2 axes"),
    ("T.vsort32(line, i[0, :], pairs)", "T111", "has 8 elements, and 32 are needed"),
    ("T.vsort32(line, idx, pairs, 2)", "T111", "pairs [64] float32 has 64 elements, and 128 are needed"),
    ("T.vsort32(line, idx, pairs, 0)", "T145", "repeat_times is 0"),
    ("T.vsort32(line, idx, pairs, repeat_times=256)", "T145", "from 1 to 255"),
    ("T.vsort32(line, idx, pairs, True)", "T145", "repeat_times is True"),
    ("T.vsort32(pairs[4:36], idx, line)", "T111", "needed"),
    ("T.vsort32(pairs[4:36], idx, long)", "T510", "begins at element 4"),
    ("T.vsort32(line, line, pairs)", "T110", "the indices line [32] float32"),
    ("T.vmrgsort(line, line, line, line, pairs, (16, 16, 0))", "T145", "element_lengths is (16, 16, 0)"),
    ("T.vmrgsort(line, line, line, line, pairs, (16, 16, 0, 4096), 3)", "T145", "element_lengths[3] is 4096"),
    ("T.vmrgsort(line, line, line, line, pairs, (16, -1, 0, 0), 3)", "T145", "element_lengths[1] is -1"),
    ("T.vmrgsort(line, line, line, line, pairs, (16, cid, 0, 0), 3)", "T145", "pass a constant"),
    ("T.vmrgsort(line, line, line, line, pairs, (8, 8, 8, 8), 5)", "T145", "valid_bit is 5"),
    ("T.vmrgsort(line, line, line, line, pairs, (17, 4, 0, 0), 3)", "T111", "line [32] float32 has 32 elements, and 34"),
    ("T.vmrgsort(line, line, line, line, pairs, (16, 16, 1, 0), 7)", "T111", "the destination pairs [64] float32 has 64"),
    ("T.vmrgsort(pairs, line, line, line, pairs, (8, 8, 0, 0), 3)", "T112", "shares elements"),
    ("T.vmrgsort(line, line, line, line, pairs[4:64], (8, 8, 0, 0), 3)", "T510", "multiple of 32 bytes"),
    ("T.vmrgsort(line[1:32], line, line, line, pairs, (8, 8, 0, 0), 3)", "T510", "multiple of 8 bytes"),
    ("T.vmrgsort(line, line, line, line, pairs, (4, 4, 4, 4), repeat_times=256)", "T145", "repeat_times is 256"),
    ("T.vmrgsort(pairs, pairs, pairs, pairs, long, (4, 4, 4, 3), repeat_times=2)", "T145", "four queues of equal length"),
    ("T.vmrgsort(pairs, pairs, pairs, pairs, long, (4, 4, 4, 4), 15, 2, True)", "T145", "no suspension"),
    ("T.vmrgsort(pairs, pairs[8:64], pairs[16:64], pairs[26:64], long, (4, 4, 4, 4), repeat_times=2)", "T111",
     "queue 3, pairs [38] float32, does not begin 24 elements after queue 0"),
    ("T.vmrgsort(pairs, pairs[8:64], pairs[16:64], line, long, (4, 4, 4, 4), repeat_times=2)", "T111", "queue 3, line [32]"),
    ("T.vextract_pairs(pairs, line, idx[0:16])", "T111", "32"),
    ("T.vextract_pairs(pairs, line, h)", "T110", "h [4, 8] float16"),
    ("T.vextract_pairs(pairs, pairs[0:32], idx)", "T112", "shares elements"),
    ("T.vextract_pairs(pairs, idx, line)", "T110", "float32 values and int32 indices"),
    ("T.tile.topk(pairs, line, 0, 8)", "T145", "K is 0"),
    ("T.tile.topk(pairs, line, 1000, 8)", "T111", "needs 2000 elements"),
    ("T.tile.topk(pairs, line, 8, 33)", "T111", "actual_num is 33, but the source has 32 elements"),
    ("T.tile.sort(pairs, line, 33)", "T111", "actual_num is 33, but the source has 32 elements"),
    ("T.tile.sort(pairs, line, 0)", "T111", "actual_num is 0, but the source has 32 elements"),
    ("T.tile.gather_mask(d, a, 'P11')", "T145", "pattern 'P11' does not exist"),
    ("T.tile.gather_mask(d, a, b)", "T110", "the indices have elements of float32"),
    ("T.tile.compare(u, a, b, 'LESS')", "T145", "no comparison 'LESS'"),
    ("T.tile.select(a, u, b, d, 'VSEL_TENSOR_SCALAR_MODE')", "T145", "with a buffer"),
    ("T.tile.select(a, u, b, 1.0, 'VSEL_TENSOR_TENSOR_MODE')", "T145", "with a scalar"),
    ("T.tile.select(a, u, b, d, 'VSEL')", "T145", "no mode 'VSEL'"),
    ("T.vcmp(a, b, mask, 'less')", "T145", "no comparison 'less'"),
    ("T.vexp2(a, d, 5)", "T110", "the temporary must be a buffer, not 5"),
    ("T.vlog2(a, d, h)", "T110", "the temporary is h [4, 8] float16, the destination d [4, 8] float32"),
    ("T.vlog2(a, d, wide)", "T110", "the temporary is wide [4, 16] float32"),
    ("T.vcast(a, h, 'nearest')", "T145", "no rounding mode 'nearest'"),
    ("T.vcast(a, h, round_mode='CAST_RINT')", "T145", "no rounding mode 'CAST_RINT'"),
    ("T.tile.cast(h, a, 'CAST_UP')", "T145", "no rounding mode"),
    ("T.tile.arith_progression(d, 0, 1, 33)", "T111", "33 elements from element 0 of d"),
    ("T.tile.clamp(d, a, 0, 1, 0)", "T111", "count is 0"),
    ("T.tile.wholereducemax(pairs, line, 8, 1, 1, 1, 8, 'ORDER_ONLY_INDEX')", "T145",
     "order 'ORDER_ONLY_INDEX' does not exist"),
    ("T.tile.brcb(pairs, line, 256, 1, 8)", "T145", "repeats is 256"),
    ("T.tile.brcb(pairs, line, 1, -1, 8)", "T145", "block_stride is -1"),
    ("T.tile.init_sort_buf(pairs, 96, 0)", "T111", "num is 96"),
    ("T.tile.init_sort_buf(pairs, 64, 3)", "T145", "rsv is 3"),
    ("T.tile.mins_experiment(d, a, 1, 0)", "T111", "count is 0"),
    ("T.tile.exp_experiment(line, line)", "T111", "must have two axes"),
    ("T.tile.row_expand_mul(d, a, row)", "T111", "does not have one element for each row"),
    ("T.reduce(a, col, 1, 'mean')", "T145", "there is no reduction 'mean'"),
    ("T.reduce_sum(a, col, [1, 1])", "T111", "are empty, or name an axis twice"),
    ("T.reduce_sum(a, col, 2)", "T111", "axis 2 of a"),
    ("T.reduce_sum(a, col, real_shape=[4, 9])", "T111", "real size 9 of an axis with 8 elements"),
])
def test_arguments(refusal: Any, statement: str, code: str, problem: str) -> None:
    """Arguments other than buffers, and their limits."""
    dialect = "ascendc" if ".tile." in statement else "npuir"
    refusal(BUFFERS, statement, dialect, codes=[code], mentions=[problem])
