"""When an op of HIVM is valid: a table of what AscendNPU-IR's ODS and verifiers state, said again for the tests.

A line of ``TABLE`` is ``names : operands -> results ; attributes ; rules``. An operand is ``name:type``, with ``?`` behind it
where it may be absent, ``*`` where there is any number, and ``!`` where the op writes it. An attribute that must be there is
``name=kind``, one that may be absent or has a default ``name~kind``. What several lines say of one op holds together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnrankedTensorType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation

from dialects.verdicts.hivm_casts import CASTS

_SHAPED = (TensorType, MemRefType, VectorType)
_UNRANKED = (UnrankedMemRefType, UnrankedTensorType)

_SETS = {
    "BITS": "i1 i8 ui8 i16 ui16 i32 ui32 i64 ui64",
    "INTS": "i8 ui8 i16 ui16 i32 ui32 i64 ui64",
    "EVERY": "i1 i8 ui8 i16 ui16 i32 ui32 i64 ui64 f16 bf16 f32 f8E4M3FN f8E5M2",
    "SIMPLE": "i8 i16 i32 f16 f32 i64",
    "ANYINT": "i8 si8 ui8 i16 si16 ui16 i32 si32 ui32",
    "SHORT": "i1 i8 i16 i32 i64 f16 f32 bf16",
}

_UNARY = "src:shaped* dst!:shaped*"
_NARY = "src:any* dst!:shaped*"
_TEMP = "temp_buffer:memref?"
_AXES = "transpose~axes broadcast~axes"
_SIGN = "is_signed~bool"
_TILING = "blockSizes:i64* processSizes:i64* swizzleOffset:i64? swizzleDirection:i64? epiloguePTiles:i64? c!:shaped"

TABLE = f"""
vexp : {_UNARY} {_TEMP} -> tensor* ; {_AXES} ; nary=1 same vector=0 01=f16,f32 brc
vln vrsqrt vsqrt vrec vabs vrelu vnot : {_UNARY} {_TEMP} -> tensor* ; {_AXES} ; nary=1 same vector=0 brc
vln vrsqrt vsqrt vrec : ; ; 0=f16,f32
vabs : ; ; 0=SIMPLE
vrelu : ; ; 0=f16,f32,i32
vnot : ; ; 0=BITS,f16,bf16,f32
vexp2 vlog2 vlog10 vlog1p vexpm1 vilogb : {_NARY} -> tensor* ; {_AXES} ; nary=1 same vector=0 0=f16,f32
vtanh vsin vcos vatan vtan verf : {_NARY} -> tensor* ; {_AXES} ; nary=1 same vector=0
vcast : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=1 vector=0 brc cast
visinf visnan : {_UNARY} -> tensor* ; {_AXES} ; nary=1 vector=0 0=f16,f32 brc
vadd vmul : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=SIMPLE vector=0 brc
vsub vdiv : {_NARY} {_TEMP} -> tensor* ; {_AXES} isSigned~bool isHP~bool ; nary=2 same 01=SIMPLE brc
vmulext vmulextui : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=i32 vector=0
vmax vmin : {_NARY} {_TEMP} -> tensor* ; {_AXES} {_SIGN} ; nary=2 same 01=EVERY vector=0 brc
vor vand : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=BITS,f16,bf16,f32 vector=0 vector=1 brc
vxor : {_UNARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=BITS vector=0 vector=1
vmod : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=i1,SIMPLE vector=0
vmodui : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=i1,i8,i16,i32,i64 vector=0
vshl : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=i16,i32,i64 vector=0 brc
vshr : {_NARY} {_TEMP} -> tensor* ; {_AXES} {_SIGN} round~bool ; nary=2 same 01=i8,i16,i32,i64 vector=0 brc
vcmp : {_NARY} {_TEMP} -> tensor* ; {_AXES} {_SIGN} ; nary=2+ 01=EVERY 2=i1,i8 vector=0
vpow : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=2 same 01=i8,i16,i32,f16,f32 vector=0 vector=1
vldexp : {_NARY} -> tensor* ; {_AXES} ; nary=2 same 01=f16,f32 vector=0 vector=1
vsel : {_NARY} {_TEMP} -> tensor* ; {_AXES} ; nary=3 0=i1,i8 12=ANYINT,i1,f16,bf16,f32,f8E4M3FN,f8E5M2,i64,ui64 brc
vbrc : src:any dst!:tm {_TEMP} -> tensor* ; broadcast_dims~axes ; same 0=EVERY brc_dims
vreduce : src:tm dst!:tm* {_TEMP} indices:tm? -> tensor* ; arith=enum unsigned_src~bool tie_break_left~bool reduce_dims=axes ;
vreduce : ; ; 01=BITS,f16,f32 reduce
vtranspose : src:tm dst!:tm {_TEMP} -> tensor* ; permutation~axes disable_align~bool ;
vtranspose : ; ; 0=ANYINT,i1,f16,bf16,f32,i64,ui64,f8E4M3FN,f8E5M2 permutes
varange : dst!:tm offset:index? strides:index* -> tensor? ; ; 0=i16,i32,f16,f32,i64 arange
vinterleave : src:any* dst!:tm {_TEMP} -> tensor* ; interleave_channel_nums~i64 ; same rank 0=EVERY interleave
vdeinterleave : src:tm dst!:tm* -> tensor* ; channel_num~i64 ; same rank 0=INTS,f16,bf16,f32,f8E4M3FN,f8E5M2 deinterleave
vflip : src:tm dst!:tm -> tensor* ; flip_axis=i64 ; same 01=INTS,f16,f32,bf16
vmulextended : src:tm* dst!:tm* {_TEMP} -> tensor* ; ; rank 0=i16
vpad : src:tm dst!:tm pad_value:any low:index* high:index* -> tensor* ; static_low=axes static_high=axes ; rank
vconcat : src:any* dst!:tm -> tensor* ; dim=i64 ; same
vgather : src:tm indices:tm dst!:tm {_TEMP} -> tensor* ; gather_axis~i64 ;
vgather : ; ; rank 0=i1,i8,i16,ui16,i32,ui32,f16,bf16,f32,f8E4M3FN,f8E5M2 1=i16,i32
vgathermask : src:tm mask:tm dst!:tm* -> tensor* ; ; rank 0=i16,ui16,i32,ui32,f16,bf16,f32 1=i1
vcumsum : src:tm dst!:tm {_TEMP} -> tensor* ; cum_dims=axes reverse~bool ; 0=SHORT cumulates
vcumprod : src:tm dst!:tm {_TEMP} -> tensor* ; cum_dims=axes reverse~bool ; same 0=SHORT cumulates
vcummax vcummin : src:tm dst!:tm {_TEMP} -> tensor* ; cum_dims=axes reverse=bool propagate_nan~bool ; same 0=SHORT cumulates
vsort : src:tm dst!:tm* {_TEMP} -> tensor* ; descending~bool sort_axis~i64 ; 01=SIMPLE sorts
load : src:tm dst!:tm pad_value:any? left_padding_num:index? right_padding_num:any? init_condition:any? -> tensor? ; ;
load : ; init_out_buffer~bool may_implicit_transpose_with_last_axis~bool ; 0=EVERY loads
store : src:tm dst!:tm -> tensor? ; may_implicit_transpose_with_last_axis~bool ; 0=EVERY stores
copy : src:tm dst!:tm pad_value:any? -> tensor? ; ; 0=EVERY copies
nd2nz : src:shaped dst!:shaped pad_value:any? init_condition:any? -> tensor* ; dst_continuous~unit init_out_buffer~bool ;
nz2nd l12ub : src:tm dst!:tm -> tensor? ; ;
load_scale : src:tm dst!:tm -> tensor? ; is_transposed~bool ;
fixpipe : src:shaped dst!:shaped unit_flag_cond:i1* quant_scale:float? -> tensor? ; ;
fixpipe : ; channel_split~bool c0_pad_en~bool unit_flag_group_id~i64 ; fixpipe unit_flag
mmadL1 batchMmadL1 : a:tm b:tm init_condition:i1 m:index k:index -> ; ;
mmadL1 batchMmadL1 : n:index c!:tm sync_related_args:i64* unit_flag_cond:i1* per_channel_bias:tm? -> tensor* ; ;
mmadL1 batchMmadL1 : ; a_transpose~unit b_transpose~unit enable_HF32~unit enable_I4~unit unit_flag_group_id~i64 ;
mmadL1 batchMmadL1 : ; ; sync_args unit_flag
matmul : a:shaped b:shaped tilingParams:shaped? bias:shaped? descale:shaped? -> ; ;
matmul : {_TILING} -> tensor* ; aTranspose~unit bTranspose~unit ; matmul
mix_matmul : a:shaped b:shaped postVecFuncIns:shaped* workspaceIns:shaped* -> ; ;
mix_matmul : tilingParams:shaped? commParams:shaped? bias:shaped? descale:shaped? {_TILING} -> tensor* ; ;
mix_matmul : ; aTranspose~unit bTranspose~unit ; matmul
set_flag wait_flag : dynamic_event_id:i64? -> ; set_pipe=enum wait_pipe=enum static_event_id~enum ;
set_flag wait_flag : ; ; one_of=static_event_id,dynamic_event_id
pipe_barrier : -> ; pipe=enum ;
sync_block : ffts_base_addr:i64? -> ; sync_block_mode=enum flag_id~int ; sync_block
sync_block_set : dynamic_flag_id:i64? ffts_base_addr:i64? -> ; tcore_type=enum tpipe=enum pipe=enum static_flag_id~int ;
sync_block_set : ; ; one_of=static_flag_id,dynamic_flag_id
sync_block_wait : dynamic_flag_id:i64? -> ; tcore_type=enum tpipe=enum pipe=enum static_flag_id~int ;
sync_block_wait : ; ; one_of=static_flag_id,dynamic_flag_id
create_sync_block_lock : lock_arg:memref? -> memref ; ; known_sizes
sync_block_lock sync_block_unlock free_lock_var : lock_var:lock -> ; ;
get_block_idx get_block_num get_sub_block_idx get_sub_block_num : -> i64 ; ;
set_mask_norm init_debug finish_debug : -> ; ;
set_ffts_base_addr : ffts_base_addr:i64 -> ; ;
anchor : -> ; id=i64 ;
pointer_cast : addrs:i64* dynamic_sizes:index* -> memref ; ; addresses
bitcast : src:any -> any ; ; bitcast
debug : arg:shown -> ; debugtype=text prefix=text hex=bool ;
"""

_TYPES: dict[str, Callable[[Attribute], bool]] = {
    "any": lambda type_: True,
    "shaped": lambda type_: isinstance(type_, _SHAPED),
    "tm": lambda type_: isinstance(type_, (TensorType, MemRefType)),
    "memref": lambda type_: isinstance(type_, MemRefType),
    "tensor": lambda type_: isinstance(type_, TensorType),
    "index": lambda type_: str(type_) == "index",
    "i64": lambda type_: type_ == i64,
    "i1": lambda type_: type_ == i1,
    "float": lambda type_: isinstance(type_, AnyFloat),
    "lock": lambda type_: isinstance(type_, MemRefType) and type_.element_type == i64 and type_.get_num_dims() == 1,
    "shown": lambda type_: isinstance(type_, (IntegerType, AnyFloat, TensorType, MemRefType)),
}
_KINDS: dict[str, Callable[[Attribute], bool]] = {
    "i64": lambda value: isinstance(value, IntegerAttr) and value.type == i64,
    "bool": lambda value: isinstance(value, IntegerAttr) and value.type == i1,
    "int": lambda value: isinstance(value, IntegerAttr),
    "axes": lambda value: isinstance(value, DenseArrayBase) and value.elt_type == i64,
    "unit": lambda value: isinstance(value, UnitAttr),
    "text": lambda value: isinstance(value, StringAttr),
    "enum": lambda value: True,
}


@dataclass
class Rules:
    """What is said of an op."""

    operands: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)


def _read() -> dict[str, Rules]:
    read: dict[str, Rules] = {}
    for line in TABLE.strip().splitlines():
        names, _, rest = line.partition(" :")
        operands, attributes, rules = rest.split(";")
        ins, _, outs = operands.partition("->")
        for name in names.split():
            op = read.setdefault(f"hivm.hir.{name}", Rules())
            op.operands += ins.split()
            op.results += outs.split()
            op.attributes += attributes.split()
            op.rules += rules.split()
    return read


RULES = _read()


def _element(type_: Attribute) -> str:
    return str(type_.element_type if isinstance(type_, (*_SHAPED, *_UNRANKED)) else type_)


def _shape(type_: Attribute) -> tuple[int, ...]:
    return tuple(type_.get_shape()) if isinstance(type_, _SHAPED) else ()


def _fit(*sizes: int) -> bool:
    return len({size for size in sizes if size != DYNAMIC_INDEX}) <= 1


def _alike(shapes: Sequence[tuple[int, ...]]) -> bool:
    return len({len(shape) for shape in shapes}) <= 1 and all(_fit(*sizes) for sizes in zip(*shapes, strict=True))


class Broken(Exception):
    """A rule is; its name."""


def _need(holds: bool, rule: str) -> None:
    if not holds:
        raise Broken(rule)


class _Judged:
    """An op taken apart by the table."""

    def __init__(self, op: Operation, rules: Rules) -> None:
        self.op = op
        self.rules = rules
        self.types = list(op.operand_types)
        self.held = self._groups()
        self.inits = [type_ for field_, types in self.held.items() if f"{field_}!" in self._written for type_ in types]
        self.inputs = [type_ for field_, types in self.held.items()
                       if f"{field_}!" not in self._written and field_ != "temp_buffer" for type_ in types]
        self.tensors = (any(isinstance(type_, TensorType) for type_ in self.types)
                        and not any(isinstance(type_, (MemRefType, UnrankedMemRefType)) for type_ in self.types))
        self.buffers = (any(isinstance(type_, MemRefType) for type_ in self.types)
                        and not any(isinstance(type_, (TensorType, UnrankedTensorType)) for type_ in self.types))

    @property
    def _written(self) -> set[str]:
        return {text.partition(":")[0] for text in self.rules.operands if "!" in text}

    def _groups(self) -> dict[str, list[Attribute]]:
        declared = [text.partition(":")[::2] for text in self.rules.operands]
        sizes = self.op.properties.get("operandSegmentSizes")
        if isinstance(sizes, DenseArrayBase):
            counts = list(sizes.get_values())
            _need(len(counts) == len(declared) and sum(counts) == len(self.types), "operand groups")
        else:
            rest = len(self.types) - sum(type_[-1] not in "?*" for _, type_ in declared)
            _need(rest >= 0, "number of operands")
            counts = [rest if type_[-1] in "?*" else 1 for _, type_ in declared]
            _need(sum(counts) == len(self.types), "number of operands")
        held: dict[str, list[Attribute]] = {}
        place = 0
        for (name, type_), count in zip(declared, counts, strict=True):
            _need(type_[-1] == "*" or count == 1 or (count == 0 and type_[-1] == "?"), f"number of {name}")
            mine = self.types[place:place + count]
            _need(all(_TYPES[type_.rstrip("?*")](each) for each in mine), f"type of {name}")
            held[name.rstrip("!")] = mine
            place += count
        return held

    def one(self, name: str) -> Attribute | None:
        types = self.held.get(name)
        return types[0] if types else None

    def shape(self, name: str) -> tuple[int, ...]:
        type_ = self.one(name)
        return () if type_ is None else _shape(type_)

    def axes(self, name: str) -> list[int]:
        value = self.op.properties.get(name)
        return list(value.get_values()) if isinstance(value, DenseArrayBase) else []

    def number(self, name: str, default: int) -> int:
        value = self.op.properties.get(name)
        return int(value.value.data) if isinstance(value, IntegerAttr) else default

    def word(self, name: str, default: str = "") -> str:
        value = self.op.properties.get(name)
        found = re.search(r"<(?:reduce_op = |mode = )?<?(\w+)", str(value)) if value is not None else None
        return found[1] if found else default

    def space(self, name: str) -> str:
        type_ = self.one(name)
        found = re.search(r"address_space<(\w+)>", str(type_.memory_space)) if isinstance(type_, MemRefType) else None
        return found[1] if found else ""


def judgement(op: Operation) -> str:
    """Empty where the op is valid, otherwise the rule that is broken."""
    rules = RULES[op.name]
    try:
        judged = _Judged(op, rules)
        _results(judged)
        for text in rules.attributes:
            name, kind = re.split("[=~]", text)
            value = op.properties.get(name)
            _need(value is not None or "~" in text, f"{name} is missing")
            _need(value is None or _KINDS[kind](value), f"kind of {name}")
        if any("!" in text for text in rules.operands):
            _destinations(judged)
        for text in rules.rules:
            name, _, detail = text.partition("=")
            if name.isdigit():
                _elements(judged, [int(digit) for digit in name], detail)
            else:
                _CHECKS[name](judged, detail)
    except Broken as broken:
        return str(broken)
    return ""


def _results(judged: _Judged) -> None:
    found = judged.op.result_types
    for text in judged.rules.results:
        _need(text[-1] == "*" or len(found) == 1 or (text[-1] == "?" and not found), "number of results")
        _need(all(_TYPES[text.rstrip("?*")](type_) for type_ in found), "type of a result")
    _need(bool(judged.rules.results) or not found, "number of results")


def _destinations(judged: _Judged) -> None:
    _need(all(isinstance(type_, (TensorType, MemRefType)) for type_ in judged.inits), "kind of destination")
    wanted = [type_ for type_ in judged.inits if isinstance(type_, TensorType)]
    _need(list(judged.op.result_types) == wanted, "a result for each destination")


def _elements(judged: _Judged, places: list[int], names: str) -> None:
    allowed = {each for name in names.split(",") for each in _SETS.get(name, name).split()}
    for place in places:
        _need(place < len(judged.types) and _element(judged.types[place]) in allowed, f"element type of operand {place}")


def _same(judged: _Judged, _: str) -> None:
    _need(len({_element(type_) for type_ in judged.types}) <= 1, "one element type")


def _rank(judged: _Judged, _: str) -> None:
    types = (*judged.inputs, *judged.inits, *judged.op.result_types)
    _need(len({len(_shape(type_)) for type_ in types if isinstance(type_, _SHAPED)}) <= 1, "one rank")


def _nary(judged: _Judged, count: str) -> None:
    inline = judged.axes("broadcast"), judged.axes("transpose")
    _need(bool(judged.inits), "a destination")
    _need(not inline[0] or all(axis == place for place, axis in enumerate(inline[1])), "broadcast and transpose")
    _rank(judged, "")
    _transposes(judged, inline[1])
    found = len(judged.inputs) + (len(judged.held.get("temp_buffer", [])) if count.endswith("+") else 0)
    _need(found == int(count.rstrip("+")), "number of inputs")
    shapes = [_shape(type_) for type_ in (*judged.inputs, *judged.inits, *judged.op.result_types) if isinstance(type_, _SHAPED)]
    _need(bool(shapes), "an operand with a rank")
    if not judged.tensors and not inline[1] and not (inline[0] and "brc" in judged.rules.rules):
        _need(_alike(shapes), "one shape")


def _transposes(judged: _Judged, permutation: list[int]) -> None:
    if not permutation or judged.tensors:
        return
    _need(len(judged.inits) == 1, "one destination")
    target = _shape(judged.inits[0])
    _need(sorted(permutation) == list(range(len(target))), "a permutation")
    _need(permutation[-1] == len(target) - 1, "the last axis stays")
    shapes = [_shape(type_) for type_ in judged.inputs if isinstance(type_, _SHAPED)]
    for place, axis in enumerate(permutation):
        _need(_fit(target[place], *(shape[axis] for shape in shapes)), "transposed shape")


def _broadcasts(judged: _Judged, _: str) -> None:
    axes = judged.axes("broadcast")
    if judged.tensors or not axes:
        return
    _need(len(judged.inits) == 1, "one destination")
    target = _shape(judged.inits[0])
    _need(all(0 <= axis < len(target) for axis in axes), "axes of broadcast")
    shapes = [_shape(type_) for type_ in judged.inputs if isinstance(type_, _SHAPED)]
    for axis, size in enumerate(target):
        sizes = [shape[axis] for shape in shapes]
        if axis in axes:
            _need(all(each in (1, size, DYNAMIC_INDEX) for each in sizes), "size 1 where broadcast")
        else:
            _need(_fit(size, *sizes), "size of the destination")


def _vector(judged: _Judged, place: str) -> None:
    at = int(place)
    _need(at < len(judged.types) and isinstance(judged.types[at], (*_SHAPED, *_UNRANKED)), f"operand {place} is no scalar")


def _cast(judged: _Judged, _: str) -> None:
    unsigned = judged.word("cast", "cast_signed") == "cast_unsigned"

    def name(type_: Attribute) -> str:
        element = _element(type_).replace("si", "i")
        return f"u{element}" if unsigned and element[0] == "i" and element not in ("i1", "index") else element

    _need((name(judged.types[0]), name(judged.inits[0]), judged.word("round_mode", "rint")) in CASTS, "no such cast")


def _brc_dims(judged: _Judged, _: str) -> None:
    axes = judged.axes("broadcast_dims")
    _one_axis_of_scratch(judged)
    source = judged.one("src")
    if not isinstance(source, _SHAPED):
        _need(not axes, "no axes for a scalar")
        return
    shape = _shape(source)
    _need(0 < len(axes) <= len(shape) and all(0 <= axis < len(shape) and shape[axis] == 1 for axis in axes), "axes of size 1")


def _one_axis_of_scratch(judged: _Judged) -> None:
    _need(judged.one("temp_buffer") is None or len(judged.shape("temp_buffer")) == 1, "rank of the scratch")


def _reduces(judged: _Judged, _: str) -> None:
    _one_axis_of_scratch(judged)
    _need(bool(judged.held["dst"]), "a destination")
    axes, source, target = judged.axes("reduce_dims"), judged.shape("src"), judged.shape("dst")
    _need(0 < len(axes) <= len(source), "number of axes")
    _need(all(0 <= axis < len(target) and target[axis] == 1 for axis in axes), "axes of size 1")
    _need(len(source) == len(target), "one rank")
    if len(set(axes)) == len(axes):
        _need(all(_fit(one, other) for axis, (one, other) in enumerate(zip(source, target, strict=True)) if axis not in axes),
              "sizes beside the axes")
    word = judged.word("arith")
    if word.endswith(("_with_index_left", "_with_index_right")):
        types = judged.held["dst"]
        _need(len(types) == 2 and len(axes) == 1, "a destination for the index and one axis")
        _need(_alike([_shape(types[1]), target]), "shape of the index")
        _need(_element(types[1]) in ("i32", "si32", "ui32"), "type of the index")
        return
    _need(len(judged.held["dst"]) == 1, "one destination")
    if word in ("andi", "ori", "xori"):
        _need("i" in _element(judged.types[0])[:2], "whole numbers")


def _permutes(judged: _Judged, _: str) -> None:
    axes, source, target = judged.axes("permutation"), judged.one("src"), judged.one("dst")
    rank = len(judged.shape("src"))
    _need(bool(axes) and len(axes) == rank and all(0 <= axis < rank for axis in axes), "axes of the source")
    moved = sum(axis != axes[axis] for axis in axes)
    if moved != 2:
        _need(rank == 4, "two axes")
        seen: set[int] = set()
        swaps = 0
        for axis in range(rank):
            length = 0
            while axis not in seen:
                seen.add(axis)
                axis, length = axes[axis], length + 1
            swaps += max(length - 1, 0)
        _need(swaps == 2, "two swaps")
    last_two = [*range(rank - 2), rank - 1, rank - 2]
    _need(judged.number("disable_align", 0) == 0 or axes == last_two, "without alignment the last two axes")
    assert source is not None and target is not None
    _need(_element(source) == _element(target) and len(_shape(target)) == rank, "element type and rank of the destination")


def _arange(judged: _Judged, _: str) -> None:
    _need(0 < len(judged.held["strides"]) == len(judged.shape("dst")), "a stride for each axis")


def _interleaves(judged: _Judged, _: str) -> None:
    _need(len(judged.held["src"]) == 2 == judged.number("interleave_channel_nums", 2), "two sources")


def _deinterleaves(judged: _Judged, _: str) -> None:
    every = judged.word("index_mode", "ALL_CHANNELS") == "ALL_CHANNELS"
    _need(len(judged.held["dst"]) == (judged.number("channel_num", 2) if every else 1), "number of destinations")


def _cumulates(judged: _Judged, _: str) -> None:
    axes = judged.axes("cum_dims")
    _need(len(axes) == 1 and len(judged.shape("src")) > 0 and 0 <= axes[0] < len(judged.shape("dst")), "one axis")


def _sorts(judged: _Judged, _: str) -> None:
    _one_axis_of_scratch(judged)
    _need(judged.number("sort_axis", -1) in (-1, len(judged.shape("src")) - 1), "the last axis")


def _moves(judged: _Judged) -> tuple[tuple[int, ...], tuple[int, ...]]:
    source, target = judged.one("src"), judged.one("dst")
    assert source is not None and target is not None
    _need(_element(source) == _element(target), "one element type")
    _need(len(_shape(source)) == len(_shape(target)), "one rank")
    return _shape(source), _shape(target)


def _pads(judged: _Judged) -> None:
    value, target = judged.one("pad_value"), judged.one("dst")
    assert target is not None
    _need(value is None or str(value) == _element(target), "type of the padding")


def _loads(judged: _Judged, _: str) -> None:
    source, target = _moves(judged)
    mode, padding = judged.word("pad_mode"), judged.one("pad_value")
    if mode in ("", "PadNull"):
        _need(_alike([source, target]) and padding is None, "without padding one shape")
    _need(mode != "PadValue" or padding is not None, "a number to pad with")
    _need(mode != "PadFirstElem" or padding is None, "no number to pad with")
    if mode:
        _need(_alike([source[:-1], target[:-1]]), "only the last axis may differ")
        if source:
            _need(_fit(source[-1]) and (DYNAMIC_INDEX in (source[-1], target[-1]) or target[-1] >= source[-1]), "room")
    _pads(judged)
    _need(judged.buffers or judged.tensors, "buffers or tensors")
    if judged.buffers and judged.space("src") and judged.space("dst"):
        _need(judged.space("src") == "gm" != judged.space("dst"), "from global memory")


def _stores(judged: _Judged, _: str) -> None:
    _need(_alike(_moves(judged)), "one shape")
    if judged.buffers and judged.space("src") and judged.space("dst"):
        _need((judged.space("src"), judged.space("dst")) == ("ub", "gm"), "from UB to global memory")


def _copies(judged: _Judged, _: str) -> None:
    shapes = _moves(judged)
    mode = judged.word("pad_mode")
    _need(bool(mode) or _alike(shapes), "without padding one shape")
    _need(mode != "PadValue" or judged.one("pad_value") is not None, "a number to pad with")
    _pads(judged)
    source, target = judged.space("src"), judged.space("dst")
    if judged.buffers and source and target:
        _need((source, target) in (("ub", "ub"), ("gm", "cbuf"), ("gm", "ub"), ("ub", "gm"), ("ub", "cbuf")), "spaces")
    if not judged.buffers and not judged.tensors and target:
        _need(target in ("ub", "cbuf"), "space of the destination")


def _unit_flag(judged: _Judged, _: str) -> None:
    modes, conditions = judged.op.properties.get("unit_flag_mode"), judged.held["unit_flag_cond"]
    if isinstance(modes, ArrayAttr):
        _need(len(modes.data) == len(conditions) if conditions else len(modes.data) <= 1, "a condition for each flag")
    else:
        _need(modes is None and not conditions, "flags for the conditions")
    _need(judged.number("unit_flag_group_id", 0) >= 0, "number of the group")


def _fixpipe(judged: _Judged, _: str) -> None:
    _need(judged.word("dma_mode", "nz2nz") in ("nz2nd", "nz2nz", "normal"), "no NZ2DN before Ascend950")
    _need(judged.space("dst") != "ub", "no UB before Ascend950")
    _need(judged.number("channel_split", 0) == 0, "no split channels before Ascend950")
    _need(judged.word("dual_dst_mode", "NO_DUAL") == "NO_DUAL", "no two destinations before Ascend950")


def _sync_args(judged: _Judged, _: str) -> None:
    _need(len(judged.held["sync_related_args"]) in (0, 7), "seven numbers or none")


def _matmul(judged: _Judged, _: str) -> None:
    _need(len(judged.shape("a")) == 2 == len(judged.shape("b")), "matrices")
    columns = judged.shape("b")[1]
    mode, scale = judged.word("descaleMode"), judged.one("descale")
    if mode not in ("", "DescaleNull"):
        _need(scale is not None and len(judged.shape("descale")) == 1, "a scale")
        size = judged.shape("descale")[0]
        if DYNAMIC_INDEX not in (size, columns):
            _need(mode != "DescalePerTensor" or size == 1, "one scale")
            _need(mode != "DescalePerChannel" or size == columns, "a scale for each column")
    if judged.one("bias") is not None:
        _need(len(judged.shape("bias")) == 1 and _fit(judged.shape("bias")[0], columns), "a bias for each column")
    given = [name for name in ("processSizes", "blockSizes", "swizzleOffset", "swizzleDirection", "epiloguePTiles")
             if judged.held[name]]
    _need(judged.one("tilingParams") is None or not given, "tiling said once")
    _need(all(len(judged.held[name]) in (0, 3) for name in ("blockSizes", "processSizes")), "three sizes")


def _one_of(judged: _Judged, names: str) -> None:
    attribute, operand = names.split(",")
    _need((judged.op.properties.get(attribute) is not None) != bool(judged.held[operand]), "one id")


_OTHER_CORE = {"cube": ("PIPE_V", "PIPE_MTE3"), "vector": ("PIPE_M", "PIPE_MTE1", "PIPE_FIX")}


def _sync_block(judged: _Judged, _: str) -> None:
    mode = judged.word("sync_block_mode")
    for core, modes in (("cube", ("ALL_CUBE", "ALL")), ("vector", ("ALL_VECTOR", "ALL_SUB_VECTOR", "ALL"))):
        waiting, other = judged.word(f"t{core}_pipe"), judged.word(f"{core}_pipe")
        _need(bool(waiting) == (mode in modes) and (not other or mode in modes), f"pipes of the {core} core")
        _need(waiting not in _OTHER_CORE[core] and other not in _OTHER_CORE[core], f"a pipe of the {core} core")


def _known_sizes(judged: _Judged, _: str) -> None:
    _need(DYNAMIC_INDEX not in _shape(judged.op.result_types[0]), "a known size")


def _addresses(judged: _Judged, _: str) -> None:
    _need(bool(judged.held["addrs"]), "an address")
    _need(len(judged.held["dynamic_sizes"]) == _shape(judged.op.result_types[0]).count(DYNAMIC_INDEX),
          "a size for each open one")


def _bitcasts(judged: _Judged, _: str) -> None:
    source, target = judged.types[0], judged.op.result_types[0]
    _need(isinstance(source, _SHAPED) == isinstance(target, _SHAPED), "a shape")
    _need(_alike([_shape(source), _shape(target)]), "one shape")
    _need(isinstance(source, (TensorType, VectorType)) == isinstance(target, (TensorType, VectorType)), "values or buffers")


_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "same": _same, "rank": _rank, "nary": _nary, "brc": _broadcasts, "vector": _vector, "cast": _cast, "brc_dims": _brc_dims,
    "reduce": _reduces, "permutes": _permutes, "arange": _arange, "interleave": _interleaves,
    "deinterleave": _deinterleaves, "cumulates": _cumulates, "sorts": _sorts, "loads": _loads, "stores": _stores,
    "copies": _copies, "unit_flag": _unit_flag, "fixpipe": _fixpipe, "sync_args": _sync_args, "matmul": _matmul,
    "one_of": _one_of, "sync_block": _sync_block, "known_sizes": _known_sizes, "addresses": _addresses, "bitcast": _bitcasts,
}
