"""Our verifier accepts and rejects the same functions as the real ones, for valid functions with one change.

MLIR verifies its own dialects, through its Python bindings; for HFusion, this file has a table of rules from AscendNPU-IR's
sources and reference. ``TILELANG_RANDOM_VERDICTS=60`` sets the number of changes of each function.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import islice
from random import Random
from typing import Any

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ShapedType, TensorType
from xdsl.ir import Attribute, Operation

from dialects.verdicts.mutation import mutants
from dialects.verdicts.seeds import UPSTREAM, function, seeds
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.mlir_bindings import new_context

CHANGES = int(os.environ.get("TILELANG_RANDOM_VERDICTS", "3"))
SEEDS = [(dialect, seed) for dialect in UPSTREAM for seed in seeds(dialect)]

OTHERWISE = (
    # messages of MLIR for functions that we accept: LLVM 19, on which AscendNPU-IR is built, accepts them too
    ("memref.reinterpret_cast", r"expected result type with \w+ = \S+ instead of",
     "LLVM 19 lets a type state what the op leaves open"),
    ("linalg.fill", r"expected fill value type", "LLVM 19 converts the number"),
    ("memref.collapse_shape", r"expected collapsed type to be",
     "AscendNPU-IR states strides that an open size hides from MLIR"),
    ("expand_shape", r"invalid output shape provided|incorrect number of dynamic sizes",
     "LLVM 19 lets values stand for known sizes"),
    ("subview", r"out-of-bounds", "LLVM 19 does not ask where a slice ends"),
    ("_slice", r"out-of-bounds", "LLVM 19 does not ask where a slice ends"),
    ("tensor.cast", r"cast incompatible", "a cast between types of no ranks"),
    ("llvm.mlir.constant", r"different integer types: 'index'", "LLVM 19 takes an index for any integer"),
    ("llvm.call_intrinsic", r"op_bundle_sizes|operand bundle", "LLVM 19 has no bundles of operands"),
)
STRICTER = (
    # our messages for functions that MLIR accepts
    ("tensor.pad", r"dynamic pad sizes", "a size that is nowhere given has no value"),
    ("vector.", r"got -1$|index #\d+ out of range: -1", "LLVM 19 has no place that stands for poison"),
    ("vector.insert", r"mismatch between dynamic and static", "an index that stands nowhere is lost"),
    ("vector.insert", r"operand 'source'", "a buffer is no element"),
    ("vector.transfer", r"element type of source", "an index has no width that memory has too"),
    ("llvm.", r"got 'vector<\d+x(si|ui|index)", "LLVM has no such elements"),
    ("llvm.shufflevector", r"Mask value|result 'res'", "a place in neither vector, a result of other elements"),
    ("llvm.getelementptr", r"property 'noWrapFlags'|Expected attribute i32", "what is known of the sums is stated"),
    ("llvm.getelementptr", r"operand 'ssa_indices'", "a pointer is moved to one place"),
    ("llvm.intr.vector.reduce", r"result 'res'", "the sum of a vector is a number"),
    ("llvm.intr.stacksave", r"result 'res'", "where a stack ends is a pointer"),
    ("llvm.mlir.constant", r"type, got 'vector|semantics: '\w+' vs. 'vector", "LLVM 19 takes dense numbers for a vector"),
    ("vector.print", r"Expected 1 operand", "there is nothing to print"),
)


def _ours(text: str) -> str:
    try:
        parse_module(text)
    except TileError as error:
        return error.message
    return ""


class _Upstream:
    """MLIR itself."""

    def __init__(self, home: str) -> None:
        self.ir: Any = import_module(f"{home}.ir")
        self.context = new_context(home)
        self.context.allow_unregistered_dialects = False

    def refusal(self, text: str) -> str:
        """Returns the verifier's message for a module; empty if the module is valid."""
        text = text.replace("bufferization.to_memref", "bufferization.to_buffer")
        text = re.sub(r"#hivm\.address_space<(\w+)>", lambda match: f"{hivm.address_space(match[1]).value} : i64", text)
        try:
            with self.context:
                self.ir.Module.parse(text, self.context).operation.verify()
        except self.ir.MLIRError as error:
            return "; ".join(diagnostic.message for diagnostic in error.error_diagnostics) or "refused"
        return ""


@pytest.fixture(scope="module")
def real() -> _Upstream:
    pytest.importorskip("iree.compiler.ir", reason="iree.compiler is not installed")
    return _Upstream("iree.compiler")


def _expected(table: Sequence[tuple[str, str, str]], text: str, message: str) -> bool:
    return any(name in text and re.search(pattern, message) for name, pattern, _ in table)


@pytest.mark.parametrize(("dialect", "seed"), SEEDS, ids=[seed.partition("=>")[2].strip()[:60] for _, seed in SEEDS])
def test_a_change_is_judged_as_mlir_judges_it(real: _Upstream, dialect: str, seed: str) -> None:
    module = parse_module(function(seed))
    texts = [print_module(each, generic=dialect != "named")
             for each in [module, *islice(mutants(module, Random(seed)), CHANGES)]]
    assert real.refusal(texts[0]) == ""
    for text in texts:
        ours, theirs = _ours(text), real.refusal(text)
        if bool(ours) != bool(theirs):
            allowed = _expected(STRICTER, text, ours) if ours else _expected(OTHERWISE, text, theirs)
            assert allowed, f"{text}\nours: {ours or 'valid'}\nMLIR: {theirs or 'valid'}"


# HFusion, which has no bindings: the rules of valid ops, written independently from the reference.

_FLOATS = ("bf16", "f16", "f32")
_NUMBERS = (*_FLOATS, "i8", "i16", "i32", "i64")
_ROUND = ("f16", "f32")
_BITS = {"f64": 64, "bf16": 16, "f16": 16, "f32": 32, "f8E4M3FN": 8, "f8E5M2": 8}
_Shape = tuple[int, ...] | None


def _element(type_: Attribute) -> str:
    return str(type_.element_type if isinstance(type_, (TensorType, MemRefType)) else type_)


def _shape(type_: Attribute) -> _Shape:
    return tuple(type_.get_shape()) if isinstance(type_, ShapedType) else None


def _bits(name: str) -> int:
    return _BITS.get(name) or (int(name[1:]) if re.fullmatch(r"i\d+", name) else -1)


def _one_of_each_out(op: Any) -> bool:
    """On tensors a result for each destination, on buffers none; not both kinds."""
    if any(not isinstance(out.type, (TensorType, MemRefType)) for out in op.dst):
        return False
    if {TensorType, MemRefType} <= {type(operand.type) for operand in op.operands}:
        return False
    return list(op.result_types) == [out.type for out in op.dst if isinstance(out.type, TensorType)]


def _each(count: int, more: Callable[[list[str], list[str]], bool] = lambda ins, outs: True) -> Callable[[Any], bool]:
    """The rule of an elementwise op: the number of inputs, which have the axes of the only destination or none."""

    def valid(op: Any) -> bool:
        if len(op.src) != count or len(op.dst) != 1 or not _one_of_each_out(op):
            return False
        rank = len(_shape(op.dst[0].type) or ())
        shapes = [_shape(operand.type) or () for operand in op.operands]
        with_axes = [shape for shape in shapes if shape]
        if any(len(shape) != rank for shape in with_axes):
            return False
        loops = with_axes[0] if with_axes else ()
        agree = DYNAMIC_INDEX in loops or all(
            size in (DYNAMIC_INDEX, loop) for shape in with_axes for size, loop in zip(shape, loops, strict=True))
        return agree and more([_element(value.type) for value in op.src], [_element(value.type) for value in op.dst])

    return valid


def _tensors(op: Operation) -> bool:
    return all(isinstance(type_, TensorType) for type_ in (*op.operand_types, *op.result_types))


def _same_rank(op: Operation) -> bool:
    return len({len(_shape(type_) or ()) for type_ in (*op.operand_types, *op.result_types)}) == 1


def _agreeing(types: Sequence[Any]) -> bool:
    first = _shape(types[0]) or ()
    return all(len(_shape(type_) or ()) == len(first) and all(
        one == other or DYNAMIC_INDEX in (one, other) for one, other in zip(first, _shape(type_) or (), strict=True))
        for type_ in types)


def _reduces(op: Any) -> bool:
    axes = list(op.dimensions.get_values())
    if not _one_of_each_out(op) or not op.src or not axes or axes != sorted(set(axes)):
        return False
    shape = _shape(op.src[0].type) or ()
    if any(not 0 <= axis < len(shape) for axis in axes) or any((_shape(each.type) or ()) != shape for each in op.src):
        return False
    rest = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return all(_shape(each.type) == rest for each in op.dst)


def _gathers(op: Any) -> bool:
    if len(op.src) != 2 or len(op.dst) != 1 or not _one_of_each_out(op):
        return False
    pairs = zip(_shape(op.src[0].type) or (), _shape(op.dst[0].type) or (), strict=False)
    return all(one == other for axis, (one, other) in enumerate(pairs) if axis != op.axis.value.data)


def _of(count: int, inputs: Sequence[str], results: Sequence[str], more: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def valid(op: Any) -> bool:
        return (len(op.operands) == count and len(op.results) == 1 and _tensors(op)
                and all(_element(type_) in inputs for type_ in op.operand_types) and _element(op.result_types[0]) in results
                and more(op))

    return valid


def _last_even(type_: Attribute) -> bool:
    shape = _shape(type_)
    return bool(shape) and (shape[-1] == DYNAMIC_INDEX or shape[-1] % 2 == 0)


def _whole(type_: Attribute) -> bool:
    return re.fullmatch(r"i\d+|index", str(getattr(type_, "element_type", type_))) is not None


def _histogram(op: Any) -> bool:
    if len(op.results) != 1:
        return False
    out, length = op.result_types[0], op.num_bins.value.data
    mask = op.operand_types[1:]
    return (len(op.operands) in (1, 2) and _tensors(op)
            and re.fullmatch(r"u?i(8|16|32|64)", _element(op.operand_types[0])) is not None
            and all(_element(type_) in ("i1", "i8", "i16") for type_ in mask) and _element(out) in ("i8", "i16", "i32", "i64")
            and _shape(out) in ((length,), (DYNAMIC_INDEX,)))


def _walks(op: Any) -> bool:
    axes = list(op.cum_dims.get_values())
    return _same_rank(op) and len(axes) == 1 and 0 <= axes[0] < len(_shape(op.result_types[0]) or ())


def _casts(op: Any) -> bool:
    """A cast that keeps the low bits goes to whole numbers."""
    def fits(ins: list[str], outs: list[str]) -> bool:
        return "truncwithoverflow" not in str(op.properties.get("round_mode")) or (
            all(name in ("f64", *_NUMBERS) or name[1:].isdigit() or name[2:].isdigit() for name in ins)
            and re.fullmatch(r"[su]?i\d+", outs[0]) is not None)

    return _each(1, fits)(op)


_VALID: dict[str, Callable[[Any], bool]] = {
    "elemwise_unary": _each(1), "elemwise_binary": _each(2), "load": _each(1), "store": _each(1),
    "compare": _each(2, lambda ins, outs: ins[0] == ins[1] and outs == ["i1"]),
    "select": _each(3, lambda ins, outs: ins[0] == "i1" and ins[1] == ins[2] == outs[0]),
    "cast": _casts, "bitcast": _each(1, lambda ins, outs: _bits(ins[0]) == _bits(outs[0]) > 0),
    "reduce_with_index": _reduces, "gather": _gathers,
    "interleave": lambda op: (_tensors(op) and len(op.operands) == 2 and len(op.results) == 1 and _same_rank(op)
                              and op.operand_types[0] == op.operand_types[1] and _last_even(op.result_types[0])),
    "deinterleave": lambda op: (_tensors(op) and len(op.operands) == 1 and _same_rank(op) and _last_even(op.operand_types[0])
                                and len(set(op.result_types)) == 1),
    "isnan": _of(1, _FLOATS, ("i1",), _same_rank), "cumsum": _of(1, (*_NUMBERS, "f8E4M3FN", "f8E5M2"),
                                                                 (*_NUMBERS, "f8E4M3FN", "f8E5M2"), _walks),
    "sort": lambda op: (len(op.operands) == 1 and _shape(op.operand_types[0]) is not None and _same_rank(op)
                        and all(isinstance(type_, TensorType) for type_ in op.result_types)
                        and op.sort_axis.value.data in (-1, len(_shape(op.operand_types[0]) or ()) - 1)),
    "mulext": lambda op: (len(op.operands) == len(op.results) == 2 and len({*op.operand_types, *op.result_types}) == 1
                          and _whole(op.operand_types[0])),
    "histogram": _histogram,
    "hypot": lambda op: (_tensors(op) and len(op.results) == 1 and len({*op.operand_types, *op.result_types}) == 1
                         and (len(op.operands) == 2 or (len(op.operands) == 3 and _element(op.operand_types[0]) != "bf16"))
                         and _element(op.operand_types[0]) in _FLOATS),
    "nextafter": _of(2, _ROUND, _ROUND, lambda op: len(set(map(_element, (*op.operand_types, *op.result_types)))) == 1
                     and _agreeing([*op.operand_types, *op.result_types])),
}


def _judged(op: Operation) -> bool:
    """xDSL checks missing attributes and their types; no rule mentions sizes of 0."""
    numbers = [op.properties.get(name) for name in ("num_bins", "axis", "sort_axis", "channelIndex")]
    kinds = all(number is None or "i64" in str(number) for number in numbers)
    sizes = [size for type_ in (*op.operand_types, *op.result_types) for size in _shape(type_) or ()]
    wanted = {name for name, _ in type(op).get_irdl_definition().properties.items()
              if name in ("num_bins", "axis", "sort_axis", "channelIndex", "dimensions", "cum_dims", "reduce_kind", "reverse",
                          "descending")}
    return kinds and 0 not in sizes and wanted <= op.properties.keys()


@pytest.mark.parametrize("seed", seeds("hfusion"), ids=lambda seed: re.search(r"hfusion\.\w+", seed)[0])
def test_a_change_of_hfusion_is_judged_by_its_rules(seed: str) -> None:
    module = parse_module(function(seed))
    judged = 0
    for each in [module, *islice(mutants(module, Random(seed)), 4 * CHANGES)]:
        op = next(op for op in each.walk() if op.name.startswith("hfusion."))
        if not _judged(op):
            continue
        judged += 1
        text = print_module(each, generic=True)
        valid, ours = _VALID[op.name.removeprefix("hfusion.")](op), _ours(text)
        assert valid == (not ours), f"{text}\nours: {ours or 'valid'}\nby its rules: {'valid' if valid else 'refused'}"
    assert judged


_UB = "#hivm.address_space<ub>"
_GM = "#hivm.address_space<gm>"
_SAMPLES = {
    "cast to fewer columns": "%a: tensor<4x8xf16>, %d: tensor<4x7xf32> => %r = hfusion.cast ins(%a : tensor<4x8xf16>)"
                             " outs(%d : tensor<4x7xf32>) -> tensor<4x7xf32>",
    "empty with a size too many": "%n: index => %r = tensor.empty(%n) : tensor<4x4xf16>",
    "subview of another size": "%m: memref<4x8xf32> => %r = memref.subview %m[0, 0] [2, 8] [1, 1] : memref<4x8xf32> to"
                               " memref<3x8xf32, strided<[8, 1]>>",
    "subview into another memory": f"%m: memref<4x8xf32, {_UB}> => %r = memref.subview %m[0, 0] [4, 8] [1, 1] : "
                                   f"memref<4x8xf32, {_UB}> to memref<4x8xf32, strided<[8, 1]>, {_GM}>",
    "collapse into another memory": f"%m: memref<4x8xf32, {_UB}> => %r = memref.collapse_shape %m [[0, 1]] : "
                                    f"memref<4x8xf32, {_UB}> into memref<32xf32, {_GM}>",
    "reduction to another shape": "%a: tensor<4x8xf32>, %d: tensor<8xf32> => %r = linalg.reduce { arith.addf } "
                                  "ins(%a : tensor<4x8xf32>) outs(%d : tensor<8xf32>) dimensions = [1]",
    "reduction along an axis twice": "%a: tensor<4x8xf32>, %d: tensor<4xf32> => %r = linalg.reduce { arith.addf } "
                                     "ins(%a : tensor<4x8xf32>) outs(%d : tensor<4xf32>) dimensions = [1, 1]",
    "mask of another length": "%m: memref<16xf32>, %i: index, %k: vector<9xi1>, %p: vector<8xf32> => vector.maskedstore"
                              " %m[%i], %k, %p : memref<16xf32>, vector<9xi1>, vector<8xf32>",
    "broadcast along a longer axis": "%s: vector<4xf32> => %r = vector.broadcast %s : vector<4xf32> to vector<4x8xf32>",
    "constant of another type": '=> %r = "llvm.mlir.constant"() <{value = 1.0 : f32}> : () -> f16',
    "cast to fewer bits": "%a: i64 => %r = llvm.zext %a : i64 to i32",
    "a third part of two": '%s: !llvm.struct<(i32, f32)> => %r = "llvm.extractvalue"(%s) <{position = array<i64: 2>}>'
                           " : (!llvm.struct<(i32, f32)>) -> f32",
    "exp of integers": "%a: i32 => %r = math.exp %a : i32",
}


@pytest.mark.parametrize("sample", _SAMPLES)
def test_shapes_and_spaces_that_do_not_fit_were_taken(sample: str) -> None:
    with pytest.raises(TileError) as caught:
        parse_module(function(_SAMPLES[sample]))
    assert caught.value.code in ("T601", "T602")
