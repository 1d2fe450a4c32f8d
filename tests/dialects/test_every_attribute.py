"""Every attribute of every op survives printing and parsing, in both forms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr, IntegerOverflowFlag
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    f32,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.llvm import CallingConventionAttr, FastMathAttr, LLVMFunctionType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineMap
from xdsl.irdl import AttrSizedSegments, IRDLOperation, VerificationContext
from xdsl.utils.exceptions import VerifyException

from dialects.every_op import CONTEXT, known_ops, samples
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError

SEGMENTS = {"operandSegmentSizes", "resultSegmentSizes", "case_operand_segments"}
ROLES = ("map", "lowerBoundMap", "upperBoundMap")
"""How an index is spelled: ``%i`` is a dimension or a symbol; the values above are none that come from a text."""
LEFT_OUT = {("linalg.quantized_matmul", "linalg.memoized_indexing_maps"): "MLIR keeps it to itself",
            ("llvm.func", "target_features"): "xDSL has no text for its values"}
VALUES: dict[tuple[str, str], Attribute] = {
    ("affine.for", "step"): IntegerAttr(2, IndexType()),
    ("tile.gemm", "int4"): UnitAttr(),
    ("tile.gemm", "format"): StringAttr("e2m1"),
    ("tile.copy", "scales"): StringAttr("MX_A_ND"),
    ("llvm.shufflevector", "mask"): DenseArrayBase.from_list(i32, [2, 1]),
    ("hivm.hir.vpad", "static_low"): DenseArrayBase.from_list(i64, [-2**63, 3]),
    ("hivm.hir.vadd", "transpose"): DenseArrayBase.from_list(i64, [1, 0]),
    ("hivm.hir.vmulextui", "transpose"): DenseArrayBase.from_list(i64, [1, 0]),
    ("hivm.hir.vbrc", "broadcast_dims"): DenseArrayBase.from_list(i64, [1]),
    ("hivm.hir.vdeinterleave", "channel_num"): IntegerAttr(4, i64),
    ("hivm.hir.vinterleave", "interleave_channel_nums"): IntegerAttr(4, i64),
    ("hivm.hir.fixpipe", "channel_split"): BoolAttr.from_bool(True),
    ("hivm.hir.vdeinterleave", "index_mode"): hivm.DeinterleaveModeAttr("CHANNEL_1"),
    ("tile.gemm", "transpose_a"): UnitAttr(),
    ("tile.gemm", "transpose_b"): UnitAttr(),
    ("tile.launch", "explicit_sub_block"): UnitAttr(),
    ("tile.launch", "upright"): UnitAttr(),
    ("llvm.call", "CConv"): CallingConventionAttr("fastcc"),
    ("func.func", "arg_attrs"): ArrayAttr([DictionaryAttr({"note": StringAttr("kept")})]),
    ("func.func", "res_attrs"): ArrayAttr([DictionaryAttr({"note": StringAttr("kept")})]),
    ("llvm.call", "var_callee_type"): LLVMFunctionType([i32], i32, True),
    ("func.func", "sym_visibility"): StringAttr("private")}
"""Values for attributes whose rules exclude all values above."""
_STUMBLES = (VerifyException, ValueError, LookupError, TypeError, AttributeError, AssertionError)
TRIED = 2
"""The number of values that each attribute gets."""


@cache
def _values() -> list[Attribute]:
    """Attributes of every kind; those that a property takes are tried on it."""
    integers: list[Attribute] = [IntegerAttr(number, type_) for type_ in (i64, i32, IndexType()) for number in (2, 1, 0, 16)]
    arrays: list[Attribute] = [DenseArrayBase.from_list(type_, list(values)) for type_ in (i64, i32)
                               for values in ((1,), (0,), (1, 0), (0, 1), ())]
    note = DictionaryAttr({"note": StringAttr("kept")})
    listed: list[Attribute] = [ArrayAttr(values) for values in (
        [note], [IntegerAttr(1, i64)], [IntegerAttr(1, i32)], [IntegerAttr(1, i32)] * 2,
        [IntegerAttr(0, i64), IntegerAttr(1, i64)], [StringAttr("kept")], [BoolAttr.from_bool(False)],
        [BoolAttr.from_bool(True)], [AffineMapAttr(AffineMap.identity(1))] * 2, [])]
    enums: list[Attribute] = []
    known_ops()  # loads the dialects
    for made in CONTEXT.loaded_attrs:
        if issubclass(made, EnumAttr):
            enums += [made(word) for word in made.CASES]
        elif issubclass(made, EnumAttribute):
            enums += [made(value) for value in made.enum_type]
    enums += [FastMathFlagsAttr("fast"), FastMathAttr("fast"), IntegerOverflowAttr([IntegerOverflowFlag.NSW])]
    return [UnitAttr(), StringAttr("private"), StringAttr("nested"), StringAttr("kept"), *integers,
            BoolAttr.from_bool(True), BoolAttr.from_bool(False), IntegerAttr(3, i8), FloatAttr(0.5, f32), *arrays, *listed,
            note, SymbolRefAttr("kept"), DenseIntOrFPElementsAttr.from_list(TensorType(i64, [2]), [2, 3]),
            AffineMapAttr(AffineMap.identity(2)), i1, f32, *enums]


def _takes(definition: Any, value: Attribute) -> bool:
    try:
        definition.constr.verify(value, VerificationContext())
    except VerifyException:
        return False
    return True


def _holds(op: Operation) -> bool:
    """Whether an op keeps the rules of its dialect."""
    try:
        op.verify_()
    except _STUMBLES:  # exceptions for invalid ops
        return False
    return True


def _holds_with(op: Operation, where: dict[str, Attribute], key: str, value: Attribute) -> bool:
    before = where.get(key)
    where[key] = value
    holds = _holds(op)
    del where[key]
    if before is not None:
        where[key] = before
    return holds


def _op(module: ModuleOp, name: str) -> Operation:
    return next(op for op in module.walk() if op.name == name)


def _facts(op: Operation) -> tuple[Any, ...]:
    """Returns the properties of an op without its bodies."""
    properties = dict(op.properties)
    if isinstance(op, IRDLOperation):
        # The generic form of a sample has the sizes of segments for all versions of xDSL; not all of them need the sizes.
        needed = {option.attribute_name for option in op.get_irdl_definition().options if isinstance(option, AttrSizedSegments)}
        properties = {name: value for name, value in properties.items() if name not in SEGMENTS or name in needed}
        for name, definition in op.get_irdl_definition().properties.items():
            if definition.default_value is not None:
                properties.setdefault(name, definition.default_value)
    return (properties, op.attributes, [value.type for value in op.operands], [value.type for value in op.results])


def _changes(name: str) -> Iterator[tuple[str, ModuleOp]]:
    """Yields modules in which one attribute of the op has another value, with its name."""
    module = parse_module(samples()[name], verify=False)
    op = _op(module, name)
    assert isinstance(op, IRDLOperation)
    op.attributes["note"] = StringAttr("kept")
    yield "note", module
    del op.attributes["note"]
    definition, held = op.get_irdl_definition(), _holds(op)
    for where, definitions in ((op.properties, definition.properties), (op.attributes, definition.attributes)):
        for key, attribute in definitions.items():
            if key in SEGMENTS or key in ROLES or (name, key) in LEFT_OUT:
                continue
            before = where.get(key)
            fitting = [value for value in _values()
                       if value not in (before, attribute.default_value) and _takes(attribute, value)]
            if held:
                fitting = [value for value in fitting if _holds_with(op, where, key, value)]
            if (name, key) in VALUES:
                fitting = [VALUES[name, key]]
            for value in fitting[:TRIED]:
                where[key] = value
                yield key, module
            where.pop(key, None)
            if before is not None:
                where[key] = before
            has_its_own = before is not None and before != attribute.default_value
            assert fitting or has_its_own, f"no value of those above fits {name} {{{key}}}: {attribute.constr}"


def _lost(name: str) -> list[str]:
    """Returns the properties that printing and parsing an op loses."""
    lost = []
    for key, module in _changes(name):
        op = _op(module, name)
        report = _facts(op)
        value = str(op.properties.get(key) or op.attributes.get(key))
        for generic in (False, True):
            form = "generic" if generic else "custom"
            try:
                again = _facts(_op(parse_module(print_module(module, generic=generic), verify=False), name))
            except (TileError, *_STUMBLES) as error:
                lost.append(f"{key} = {value}, {form}: {type(error).__name__}: {error}")
                continue
            if again != report:
                lost.append(f"{key} = {value}, {form}: {again}")
    return lost


def test_a_text_that_leaves_something_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test below can fail: a property that a printer forgets, and one that a parser does."""
    plain = hivm.PipeBarrierOp.print
    monkeypatch.setattr(hivm.PipeBarrierOp, "print", lambda op, printer: printer.print_string("[<PIPE_ALL>]"))
    assert len([found for found in _lost("hivm.hir.pipe_barrier") if found.startswith("pipe = ")]) == TRIED
    monkeypatch.setattr(hivm.PipeBarrierOp, "print", plain)
    assert _lost("hivm.hir.pipe_barrier") == []
    monkeypatch.setattr(hivm.PipeBarrierOp, "complete_parsed", lambda op: op.attributes.clear())
    assert len([found for found in _lost("hivm.hir.pipe_barrier") if found.startswith("note = ")]) == 1


@pytest.mark.parametrize(("line", "form"), [
    ("func.func private @f(i32 {a.x = 1 : i32}, f32) -> (i32 {b}, f32)", None),
    ("func.func private @f(i32) -> (i32 {b}) attributes {c}", None),
    ("func.func @f(%a: i32 {a.x}) {", None),
    ("scf.if %c {\n    }{note}", None),
    ('%0 = "llvm.mlir.constant"() <{value = 0 : index}> : () -> i64', None),
    ("%0 = llvm.mlir.constant(0 : index) : i64", '%0 = "llvm.mlir.constant"() <{value = 0 : index}> : () -> i64'),
    ("%0 = linalg.exp {note} ins(%t : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>", None),
    ("%0 = vector.transfer_read %m[%i], %x {in_bounds = [true], note} : memref<8xf32>, vector<4xf32>", None),
])
def test_what_was_lost_on_the_way_through_text(line: str, form: str | None) -> None:
    arguments = "%t: tensor<4xf32>, %m: memref<8xf32>, %i: index, %x: f32, %c: i1"
    text = line if "private" in line else f"{line}\n  return\n}}" if line.endswith("{") else (
        f"func.func @g({arguments}) {{\n  {line}\n  return\n}}")
    module = parse_module(text)
    assert (form or line) in print_module(module)
    for generic in (False, True):
        assert print_module(parse_module(print_module(module, generic=generic)), generic=True) == print_module(
            module, generic=True)


def test_every_op_has_a_sample() -> None:
    assert known_ops().keys() - samples().keys() == {"builtin.unregistered"}


@pytest.mark.parametrize("dialect", sorted({name.partition(".")[0] for name in known_ops()}))
def test_every_attribute_comes_back(dialect: str) -> None:
    lost = {name: found for name in sorted(samples()) if name.partition(".")[0] == dialect and (found := _lost(name))}
    assert lost == {}
