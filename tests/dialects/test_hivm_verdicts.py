"""Our verifier accepts an op of HIVM if a table of the toolchain's rules does, for modules with one change.

``TILELANG_RANDOM_VERDICTS=60`` sets the number of changes of each module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    ShapedType,
    StringAttr,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from dialects.every_op import samples
from dialects.verdicts.hivm_rules import judgement
from dialects.verdicts.hivm_table import RULES
from dialects.verdicts.mutation import mutants
from dialects.verdicts.seeds import function, seeds
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.declaration import SEGMENTS
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError

CHANGES = int(os.environ.get("TILELANG_RANDOM_VERDICTS", "3"))
SAMPLES = samples()
WITH_PARTS = [name for name, rules in RULES.items() if rules.operands or rules.results or rules.attributes]
MODULES = [*(SAMPLES[name] for name in WITH_PARTS), *map(function, seeds("hivm"))]


def _refusal(text: str) -> str:
    try:
        parse_module(text)
    except TileError as error:
        return error.message
    return ""


def _in_no_rule(op: Operation) -> bool:
    """The toolchain itself crashes, or accepts meaningless ops."""
    axes = op.properties.get("permutation")
    if isinstance(axes, DenseArrayBase) and len(set(axes.get_values())) < len(axes):
        return True
    types = [*op.operand_types, *op.result_types]
    sizes = [size for type_ in types if isinstance(type_, ShapedType) for size in type_.get_shape()]
    return any(size != DYNAMIC_INDEX and size <= 0 for size in sizes)


def _first(text: str) -> str:
    return next(op.name for op in parse_module(text).walk() if op.name in RULES)


def test_every_op_of_hivm_has_a_row() -> None:
    assert set(RULES) == {op.name for op in hivm.Hivm.operations}


@pytest.mark.parametrize("text", MODULES, ids=_first)
def test_a_change_of_hivm_is_judged_by_its_rules(text: str) -> None:
    module = parse_module(text)
    for number, each in enumerate([module, *islice(mutants(module, Random(text)), CHANGES)]):
        judged = [op for op in each.walk() if op.name in RULES]
        if any(map(_in_no_rule, judged)):
            continue
        changed = print_module(each, generic=True)
        broken, ours = next(filter(None, map(judgement, judged)), ""), _refusal(changed)
        assert number or not broken, f"{text}\nis valid; by its rules: {broken}"
        if ours and not broken and "element type" in ours and re.search(r"\bsi(8|16|32)\b", changed):
            continue  # no element type of the language
        assert bool(broken) == bool(ours), f"{changed}\nours: {ours or 'valid'}\nby its rules: {broken or 'valid'}"


def _near(type_: Attribute) -> Iterator[Attribute]:
    """Types that differ from a given one in one respect: its kind, element type, number of axes, a size, its space."""
    yield from (f64, i1, i32, IndexType())
    if not isinstance(type_, (TensorType, MemRefType)):
        yield from (TensorType(type_, [4]), MemRefType(type_, [4]))
        return
    element, shape = type_.element_type, [*type_.get_shape()]
    yield from (UnrankedMemRefType.from_type(element), UnrankedTensorType(element), VectorType(element, [4]))
    yield TensorType(element, shape) if isinstance(type_, MemRefType) else MemRefType(element, shape)
    if isinstance(type_, MemRefType):
        yield from (MemRefType(element, shape, type_.layout, hivm.address_space(space)) for space in ("gm", "ub", "cbuf"))
    for other, sizes in ((f64, shape), (i1, shape), (element, [*shape, 1]), (element, shape[1:]), (element, [7, *shape[1:]])):
        yield (TensorType(other, sizes) if isinstance(type_, TensorType)
               else MemRefType(other, sizes, NoneAttr(), type_.memory_space))


def _similar_attributes(attribute: Attribute) -> Iterator[Attribute]:
    """Attributes of other kinds, a list with an entry more, one of an entry of another kind."""
    yield from (StringAttr("other"), IntegerAttr(1, IntegerType(8)), UnitAttr())
    if isinstance(attribute, ArrayAttr) and attribute.data:
        yield from (ArrayAttr([*attribute, attribute.data[-1]]), ArrayAttr([StringAttr("other")]))
    elif isinstance(attribute, DenseArrayBase) and attribute.elt_type == i64:
        yield DenseArrayBase.from_list(i64, [*attribute.get_values(), 1])


def _changes(op: Operation) -> Iterator[str]:
    """Makes one change of the op at a time, and undoes it: an attribute is removed or changed, or a type replaced by a similar
    one."""
    assert isinstance(op, IRDLOperation)
    declared = op.get_irdl_definition().properties
    read_as = {name for name, property_ in declared.items() if property_.default_value is not None}
    for held in (op.properties, op.attributes):
        for name, old in [each for each in held.items() if each[0] != SEGMENTS]:
            if name not in read_as:
                del held[name]
                yield f"without {name}"
            for other in _similar_attributes(old):
                held[name] = other
                yield f"{name} = {other}"
            held[name] = old
    block = op.parent
    assert block is not None
    for place, value in enumerate(op.operands):
        for type_ in _near(value.type):
            op.operands[place] = block.insert_arg(type_, 0)
            yield f"operand {place}: {type_}"
        op.operands[place] = value
    for result in op.results:
        old = result.type
        for type_ in _near(old):
            result._type = type_  # an invalid type for the op is intended
            yield f"result {result.index}: {type_}"
        result._type = old


def _accepts(op: Operation) -> bool:
    try:
        op.verify_()
    except VerifyException:
        return False
    return True


@pytest.mark.parametrize("text", MODULES, ids=_first)
def test_every_part_of_an_op_of_hivm_is_judged(text: str) -> None:
    op = next(op for op in parse_module(text).walk() if op.name in RULES)
    verdicts = {change: (_accepts(op), judgement(op)) for change in _changes(op)}
    assert {change: verdict for change, verdict in verdicts.items() if verdict[0] == bool(verdict[1])} == {}


_VECTOR = 'hivm.tcore_type = #hivm.tcore_type<VECTOR>, symbol = "f"'
_SCALED = ("hivm.hir.mmadmxL1 {{{0}}} ins(%a, %a, %a, %a, %b, %n, %n, %n : memref<4x4xi8>, memref<4x4xi8>, memref<4x4xi8>,"
           " memref<4x4xi8>, i1, index, index, index) outs(%c : memref<4x4xf32>){1}")
_SAMPLES = {
    "a root without a destination":
        '"hivm.hir.vsqrt"(%m) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (memref<4x8xf32>) -> ()',
    "bits of a tensor as a buffer": "%r = hivm.hir.bitcast %t : tensor<4x8xf32> -> memref<4x8xi32>",
    "bits of a buffer as a tensor": "%r = hivm.hir.bitcast %m : memref<4x8xf32> -> tensor<4x8xi32>",
    "a buffer of an open size that nothing states": "%r = hivm.hir.pointer_cast(%p) : memref<?xf32>",
    "a known size stated again": "%r = hivm.hir.pointer_cast(%p) [%n] : memref<8xf32>",
    "infinities told in a buffer without a rank":
        '"hivm.hir.visinf"(%m, %u) <{operandSegmentSizes = array<i32: 1, 1>}> : (memref<4x8xf32>, memref<*xi1>) -> ()',
    "a buffer without a rank shown":
        '"hivm.hir.debug"(%u) <{debugtype = "print", hex = false, prefix = "x"}> : (memref<*xi1>) -> ()',
    "a lock in memory without a rank": '%r = "hivm.hir.create_sync_block_lock"(%u) : (memref<*xi1>) -> memref<1xi64>',
    "a call that writes to a buffer without a rank":
        f'hivm.hir.custom {{{_VECTOR}, hivm.pipe = #hivm.pipe<PIPE_V>}} "f" outs(%u : memref<*xi1>)',
    "a call on no pipe yet": f'hivm.hir.custom {{{_VECTOR}, hivm.pipe = #hivm.pipe<PIPE_UNASSIGNED>}} "f" ins(%p : i64)',
    "a format of matrices that there is not": _SCALED.format("rhsFormat = 0 : i32", ""),
    "a product that yields a buffer of whole numbers":
        "%r = " + _SCALED.format("rhsFormat = 1 : i32", " -> memref<4x4xi32>"),
}


@pytest.mark.parametrize("sample", _SAMPLES)
def test_ops_that_the_toolchain_refuses_were_taken(sample: str) -> None:
    arguments = ("%m: memref<4x8xf32>, %t: tensor<4x8xf32>, %p: i64, %n: index, %u: memref<*xi1>, %a: memref<4x4xi8>,"
                 " %c: memref<4x4xf32>, %b: i1")
    with pytest.raises(TileError) as caught:
        parse_module(function(f"{arguments} => {_SAMPLES[sample]}"))
    assert caught.value.code == "T602"


def test_bits_of_a_tensor_without_a_rank_were_refused() -> None:
    text = function("%t: tensor<*xf32> => %r = hivm.hir.bitcast %t : tensor<*xf32> -> tensor<4x8xi32>")
    assert "hivm.hir.bitcast" in print_module(parse_module(text))


@pytest.mark.parametrize(("target", "mode", "refused"), [
    ("Ascend910B3", "", False),
    ("Ascend950PR_957b", "", True),
    ("Ascend950PR_957b", ", hivm.vf_mode = #hivm.vf_mode<SIMD>", False),
])
def test_a_call_on_the_950_states_its_mode(target: str, mode: str, *, refused: bool) -> None:
    call = f'hivm.hir.custom {{{_VECTOR}, hivm.pipe = #hivm.pipe<PIPE_V>{mode}}} "f" ins(%p : i64)'
    text = f'module attributes {{hacc.target = #hacc.target<"{target}">}} {{\n{function(f"%p: i64 => {call}")}}}\n'
    op = next(op for op in parse_module(text, verify=False).walk() if op.name == "hivm.hir.custom")
    assert ("Missing vf mode" in _refusal(text), bool(judgement(op))) == (refused, refused)
