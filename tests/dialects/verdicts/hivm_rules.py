"""The implementation of the rules that the table in ``hivm_table`` names: whether an op of HIVM is valid."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnrankedTensorType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation

from dialects.verdicts.hivm_casts import CASTS
from dialects.verdicts.hivm_custom import CUSTOM
from dialects.verdicts.hivm_judged import (
    KINDS,
    SHAPED,
    TYPES,
    UNRANKED,
    Broken,
    Judged,
    alike,
    element_of,
    fitting,
    need,
    shape_of,
)
from dialects.verdicts.hivm_simt import SIMT
from dialects.verdicts.hivm_table import RULES, SETS


def judgement(op: Operation) -> str:
    """Returns the violated rule; an empty string if the op is valid."""
    rules = RULES[op.name]
    try:
        judged = Judged(op, rules)
        _results(judged)
        for text in rules.attributes:
            name, kind = re.split("[=~]", text)
            value = op.properties.get(name)
            need(value is not None or "~" in text, f"{name} is missing")
            need(value is None or KINDS[kind](value), f"kind of {name}")
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


def _results(judged: Judged) -> None:
    found = judged.op.result_types
    for text in judged.rules.results:
        need(text[-1] == "*" or len(found) == 1 or (text[-1] == "?" and not found), "number of results")
        need(all(TYPES[text.rstrip("?*")](type_) for type_ in found), "type of a result")
    need(bool(judged.rules.results) or not found, "number of results")


def _destinations(judged: Judged) -> None:
    need(all(isinstance(type_, (TensorType, MemRefType)) for type_ in judged.inits), "kind of destination")
    wanted = [type_ for type_ in judged.inits if isinstance(type_, TensorType)]
    found = [type_ for type_ in judged.op.result_types if isinstance(type_, (TensorType, UnrankedTensorType))]
    need(found == wanted, "a result for each destination")


def _elements(judged: Judged, places: list[int], names: str) -> None:
    allowed = {each for name in names.split(",") for each in SETS.get(name, name).split()}
    for place in places:
        need(place < len(judged.types) and element_of(judged.types[place]) in allowed, f"element type of operand {place}")


def _same(judged: Judged, _: str) -> None:
    need(len({element_of(type_) for type_ in judged.types}) <= 1, "one element type")


def _rank(judged: Judged, _: str) -> None:
    types = (*judged.inputs, *judged.inits, *judged.op.result_types)
    need(len({len(shape_of(type_)) for type_ in types if isinstance(type_, SHAPED)}) <= 1, "one rank")


def _nary(judged: Judged, count: str) -> None:
    inline = judged.axes("broadcast"), judged.axes("transpose")
    need(bool(judged.inits), "a destination")
    need(not inline[0] or all(axis == place for place, axis in enumerate(inline[1])), "broadcast and transpose")
    _rank(judged, "")
    _transposes(judged, inline[1])
    found = len(judged.inputs) + (len(judged.held.get("temp_buffer", [])) if count.endswith("+") else 0)
    need(found == int(count.rstrip("+")), "number of inputs")
    types = (*judged.inputs, *judged.inits, *judged.op.result_types)
    shapes = [shape_of(type_) for type_ in types if isinstance(type_, SHAPED)]
    need(bool(shapes), "an operand with a rank")
    if not judged.tensors and not inline[1] and not (inline[0] and "brc" in judged.rules.rules):
        need(alike(shapes), "one shape")


def _transposes(judged: Judged, permutation: list[int]) -> None:
    if not permutation or judged.tensors:
        return
    need(len(judged.inits) == 1, "one destination")
    target = shape_of(judged.inits[0])
    need(sorted(permutation) == list(range(len(target))), "a permutation")
    need(permutation[-1] == len(target) - 1, "the last axis stays")
    shapes = [shape_of(type_) for type_ in judged.inputs if isinstance(type_, SHAPED)]
    for place, axis in enumerate(permutation):
        need(fitting(target[place], *(shape[axis] for shape in shapes)), "transposed shape")


def _broadcasts(judged: Judged, _: str) -> None:
    axes = judged.axes("broadcast")
    if judged.tensors or not axes:
        return
    need(len(judged.inits) == 1, "one destination")
    target = shape_of(judged.inits[0])
    need(all(0 <= axis < len(target) for axis in axes), "axes of broadcast")
    shapes = [shape_of(type_) for type_ in judged.inputs if isinstance(type_, SHAPED)]
    for axis, size in enumerate(target):
        sizes = [shape[axis] for shape in shapes]
        if axis in axes:
            need(all(each in (1, size, DYNAMIC_INDEX) for each in sizes), "size 1 where broadcast")
        else:
            need(fitting(size, *sizes), "size of the destination")


def _vector(judged: Judged, place: str) -> None:
    at = int(place)
    need(at < len(judged.types) and isinstance(judged.types[at], (*SHAPED, *UNRANKED)), f"operand {place} is no scalar")


def _cast(judged: Judged, _: str) -> None:
    unsigned = judged.word("cast", "cast_signed") == "cast_unsigned"

    def name(type_: Attribute) -> str:
        element = element_of(type_).replace("si", "i")
        return f"u{element}" if unsigned and element[0] == "i" and element not in ("i1", "index") else element

    need((name(judged.types[0]), name(judged.inits[0]), judged.word("round_mode", "rint")) in CASTS, "no such cast")


def _brc_dims(judged: Judged, _: str) -> None:
    axes = judged.axes("broadcast_dims")
    _one_axis_of_scratch(judged)
    source = judged.one("src")
    if not isinstance(source, SHAPED):
        need(not axes, "no axes for a scalar")
        return
    shape = shape_of(source)
    need(0 < len(axes) <= len(shape) and all(0 <= axis < len(shape) and shape[axis] == 1 for axis in axes), "axes of size 1")


def _one_axis_of_scratch(judged: Judged) -> None:
    need(judged.one("temp_buffer") is None or len(judged.shape("temp_buffer")) == 1, "rank of the scratch")


def _reduces(judged: Judged, _: str) -> None:
    _one_axis_of_scratch(judged)
    need(bool(judged.held["dst"]), "a destination")
    axes, source, target = judged.axes("reduce_dims"), judged.shape("src"), judged.shape("dst")
    need(0 < len(axes) <= len(source), "number of axes")
    need(all(0 <= axis < len(target) and target[axis] == 1 for axis in axes), "axes of size 1")
    need(len(source) == len(target), "one rank")
    if len(set(axes)) == len(axes):
        need(all(fitting(one, other) for axis, (one, other) in enumerate(zip(source, target, strict=True)) if axis not in axes),
              "sizes beside the axes")
    word = judged.word("arith")
    if word.endswith(("_with_index_left", "_with_index_right")):
        types = judged.held["dst"]
        need(len(types) == 2 and len(axes) == 1, "a destination for the index and one axis")
        need(alike([shape_of(types[1]), target]), "shape of the index")
        need(element_of(types[1]) in ("i32", "si32", "ui32"), "type of the index")
        return
    need(len(judged.held["dst"]) == 1, "one destination")
    if word in ("andi", "ori", "xori"):
        need("i" in element_of(judged.types[0])[:2], "whole numbers")


def _permutes(judged: Judged, _: str) -> None:
    axes, source, target = judged.axes("permutation"), judged.one("src"), judged.one("dst")
    rank = len(judged.shape("src"))
    need(bool(axes) and len(axes) == rank and all(0 <= axis < rank for axis in axes), "axes of the source")
    moved = sum(axis != axes[axis] for axis in axes)
    if moved != 2:
        need(rank == 4, "two axes")
        seen: set[int] = set()
        swaps = 0
        for axis in range(rank):
            length = 0
            while axis not in seen:
                seen.add(axis)
                axis, length = axes[axis], length + 1
            swaps += max(length - 1, 0)
        need(swaps == 2, "two swaps")
    last_two = [*range(rank - 2), rank - 1, rank - 2]
    need(judged.number("disable_align", 0) == 0 or axes == last_two, "without alignment the last two axes")
    assert source is not None and target is not None
    need(element_of(source) == element_of(target) and len(shape_of(target)) == rank, "element type and rank of the destination")


def _arange(judged: Judged, _: str) -> None:
    need(0 < len(judged.held["strides"]) == len(judged.shape("dst")), "a stride for each axis")


def _interleaves(judged: Judged, _: str) -> None:
    need(len(judged.held["src"]) == 2 == judged.number("interleave_channel_nums", 2), "two sources")


def _deinterleaves(judged: Judged, _: str) -> None:
    every = judged.word("index_mode", "ALL_CHANNELS") == "ALL_CHANNELS"
    need(len(judged.held["dst"]) == (judged.number("channel_num", 2) if every else 1), "number of destinations")


def _cumulates(judged: Judged, _: str) -> None:
    axes = judged.axes("cum_dims")
    need(len(axes) == 1 and len(judged.shape("src")) > 0 and 0 <= axes[0] < len(judged.shape("dst")), "one axis")


def _sorts(judged: Judged, _: str) -> None:
    _one_axis_of_scratch(judged)
    need(judged.number("sort_axis", -1) in (-1, len(judged.shape("src")) - 1), "the last axis")


def _moves(judged: Judged) -> tuple[tuple[int, ...], tuple[int, ...]]:
    source, target = judged.one("src"), judged.one("dst")
    assert source is not None and target is not None
    need(element_of(source) == element_of(target), "one element type")
    need(len(shape_of(source)) == len(shape_of(target)), "one rank")
    return shape_of(source), shape_of(target)


def _pads(judged: Judged) -> None:
    value, target = judged.one("pad_value"), judged.one("dst")
    assert target is not None
    need(value is None or str(value) == element_of(target), "type of the padding")


def _loads(judged: Judged, _: str) -> None:
    source, target = _moves(judged)
    mode, padding = judged.word("pad_mode"), judged.one("pad_value")
    if mode in ("", "PadNull"):
        need(alike([source, target]) and padding is None, "without padding one shape")
    need(mode != "PadValue" or padding is not None, "a number to pad with")
    need(mode != "PadFirstElem" or padding is None, "no number to pad with")
    if mode:
        need(alike([source[:-1], target[:-1]]), "only the last axis may differ")
        if source:
            need(fitting(source[-1]) and (DYNAMIC_INDEX in (source[-1], target[-1]) or target[-1] >= source[-1]), "room")
    _pads(judged)
    need(judged.buffers or judged.tensors, "buffers or tensors")
    if judged.buffers and judged.space("src") and judged.space("dst"):
        need(judged.space("src") == "gm" != judged.space("dst"), "from global memory")


def _stores(judged: Judged, _: str) -> None:
    need(alike(_moves(judged)), "one shape")
    if judged.buffers and judged.space("src") and judged.space("dst"):
        need((judged.space("src"), judged.space("dst")) == ("ub", "gm"), "from UB to global memory")


def _copies(judged: Judged, _: str) -> None:
    shapes = _moves(judged)
    mode = judged.word("pad_mode")
    need(bool(mode) or alike(shapes), "without padding one shape")
    need(mode != "PadValue" or judged.one("pad_value") is not None, "a number to pad with")
    _pads(judged)
    source, target = judged.space("src"), judged.space("dst")
    if judged.buffers and source and target:
        need((source, target) in (("ub", "ub"), ("gm", "cbuf"), ("gm", "ub"), ("ub", "gm"), ("ub", "cbuf")), "spaces")
    if not judged.buffers and not judged.tensors and target:
        need(target in ("ub", "cbuf"), "space of the destination")


def _unit_flag(judged: Judged, _: str) -> None:
    modes, conditions = judged.op.properties.get("unit_flag_mode"), judged.held["unit_flag_cond"]
    if isinstance(modes, ArrayAttr):
        need(len(modes.data) == len(conditions) if conditions else len(modes.data) <= 1, "a condition for each flag")
    else:
        need(modes is None and not conditions, "flags for the conditions")
    need(judged.number("unit_flag_group_id", 0) >= 0, "number of the group")


def _fixpipe(judged: Judged, _: str) -> None:
    need(judged.word("dma_mode", "nz2nz") in ("nz2nd", "nz2nz", "normal"), "no NZ2DN before Ascend950")
    need(judged.space("dst") != "ub", "no UB before Ascend950")
    need(judged.number("channel_split", 0) == 0, "no split channels before Ascend950")
    need(judged.word("dual_dst_mode", "NO_DUAL") == "NO_DUAL", "no two destinations before Ascend950")


def _sync_args(judged: Judged, _: str) -> None:
    need(len(judged.held["sync_related_args"]) in (0, 7), "seven numbers or none")


def _matmul(judged: Judged, per_group: str) -> None:
    need(len(judged.shape("a")) == (3 if per_group else 2) and len(judged.shape("b")) == 2, "matrices")
    need(not per_group or len(judged.shape(per_group)) == 1, "a number for each group")
    columns = judged.shape("b")[1]
    mode, scale = judged.word("descaleMode"), judged.one("descale")
    if mode not in ("", "DescaleNull"):
        need(scale is not None and len(judged.shape("descale")) == 1, "a scale")
        size = judged.shape("descale")[0]
        if DYNAMIC_INDEX not in (size, columns):
            need(mode != "DescalePerTensor" or size == 1, "one scale")
            need(mode != "DescalePerChannel" or size == columns, "a scale for each column")
    if judged.one("bias") is not None:
        need(len(judged.shape("bias")) == 1 and fitting(judged.shape("bias")[0], columns), "a bias for each column")
    given = [name for name in ("processSizes", "blockSizes", "swizzleOffset", "swizzleDirection", "epiloguePTiles")
             if judged.held[name]]
    need(judged.one("tilingParams") is None or not given, "tiling said once")
    need(all(len(judged.held[name]) in (0, 3) for name in ("blockSizes", "processSizes")), "three sizes")


def _one_of(judged: Judged, names: str) -> None:
    attribute, operand = names.split(",")
    need((judged.op.properties.get(attribute) is not None) != bool(judged.held[operand]), "one id")


_OTHER_CORE = {"cube": ("PIPE_V", "PIPE_MTE3"), "vector": ("PIPE_M", "PIPE_MTE1", "PIPE_FIX")}


def _sync_block(judged: Judged, _: str) -> None:
    mode = judged.word("sync_block_mode")
    for core, modes in (("cube", ("ALL_CUBE", "ALL")), ("vector", ("ALL_VECTOR", "ALL_SUB_VECTOR", "ALL"))):
        waiting, other = judged.word(f"t{core}_pipe"), judged.word(f"{core}_pipe")
        need(bool(waiting) == (mode in modes) and (not other or mode in modes), f"pipes of the {core} core")
        need(waiting not in _OTHER_CORE[core] and other not in _OTHER_CORE[core], f"a pipe of the {core} core")


def _known_sizes(judged: Judged, _: str) -> None:
    need(DYNAMIC_INDEX not in shape_of(judged.op.result_types[0]), "a known size")


def _addresses(judged: Judged, _: str) -> None:
    need(bool(judged.held["addrs"]), "an address")
    need(len(judged.held["dynamic_sizes"]) == shape_of(judged.op.result_types[0]).count(DYNAMIC_INDEX),
          "a size for each open one")


def _bitcasts(judged: Judged, _: str) -> None:
    source, target = judged.types[0], judged.op.result_types[0]
    need(isinstance(source, (*SHAPED, *UNRANKED)) == isinstance(target, (*SHAPED, *UNRANKED)), "a shape")
    known = not isinstance(source, UNRANKED) and not isinstance(target, UNRANKED)
    need(not known or alike([shape_of(source), shape_of(target)]), "one shape")
    values = (TensorType, UnrankedTensorType, VectorType)
    need(isinstance(source, values) == isinstance(target, values), "values or buffers")


def _padding(judged: Judged, axes: str) -> None:
    padding = judged.op.properties["padding"]
    if isinstance(padding, IntegerAttr):
        return
    if isinstance(padding, ArrayAttr):
        need(all(isinstance(each, IntegerAttr) for each in padding), "numbers to pad by")
    else:
        need(isinstance(padding, DenseArrayBase) and padding.elt_type == i64, "numbers to pad by")
    assert isinstance(padding, (ArrayAttr, DenseArrayBase))
    need(len(padding) == int(axes), "a number for each axis")


def _relayout(judged: Judged, _: str) -> None:
    need(element_of(judged.types[0]) == element_of(judged.op.result_types[0]), "one element type")
    need(judged.axes("static_output_shape").count(DYNAMIC_INDEX) == len(judged.held["output_shape"]), "a size for each open")


_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "same": _same, "rank": _rank, "nary": _nary, "brc": _broadcasts, "vector": _vector, "cast": _cast, "brc_dims": _brc_dims,
    "reduce": _reduces, "permutes": _permutes, "arange": _arange, "interleave": _interleaves,
    "deinterleave": _deinterleaves, "cumulates": _cumulates, "sorts": _sorts, "loads": _loads, "stores": _stores,
    "copies": _copies, "unit_flag": _unit_flag, "fixpipe": _fixpipe, "sync_args": _sync_args, "matmul": _matmul,
    "one_of": _one_of, "sync_block": _sync_block, "known_sizes": _known_sizes, "addresses": _addresses, "bitcast": _bitcasts,
    "padding": _padding, "relayout": _relayout, **SIMT, **CUSTOM,
}
