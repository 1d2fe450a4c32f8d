"""Our verifier takes an op of HIVM where a table of the toolchain's rules does, for modules in which one thing was changed.

``TILELANG_RANDOM_VERDICTS=60`` draws so many changes of each module.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from random import Random

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, ShapedType, UnrankedMemRefType, UnrankedTensorType
from xdsl.ir import Operation

from dialects.every_op import samples
from dialects.verdicts.hivm_rules import RULES, judgement
from dialects.verdicts.mutation import mutants
from dialects.verdicts.seeds import function, seeds
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
    """The toolchain itself does not survive it, or takes what has no meaning."""
    axes = op.properties.get("permutation")
    if isinstance(axes, DenseArrayBase) and len(set(axes.get_values())) < len(axes):
        return True
    types = [*op.operand_types, *op.result_types]
    sizes = [size for type_ in types if isinstance(type_, ShapedType) for size in type_.get_shape()]
    if any(size != DYNAMIC_INDEX and size <= 0 for size in sizes):
        return True
    return any(isinstance(type_, (UnrankedMemRefType, UnrankedTensorType)) for type_ in types)


def _first(text: str) -> str:
    return next(op.name for op in parse_module(text).walk() if op.name in RULES)


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


_SAMPLES = {
    "a root without a destination":
        '"hivm.hir.vsqrt"(%m) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (memref<4x8xf32>) -> ()',
    "bits of a tensor as a buffer": "%r = hivm.hir.bitcast %t : tensor<4x8xf32> -> memref<4x8xi32>",
    "bits of a buffer as a tensor": "%r = hivm.hir.bitcast %m : memref<4x8xf32> -> tensor<4x8xi32>",
    "a buffer of an open size that nothing states": "%r = hivm.hir.pointer_cast(%p) : memref<?xf32>",
    "a known size stated again": "%r = hivm.hir.pointer_cast(%p) [%n] : memref<8xf32>",
}


@pytest.mark.parametrize("sample", _SAMPLES)
def test_ops_that_the_toolchain_refuses_were_taken(sample: str) -> None:
    arguments = "%m: memref<4x8xf32>, %t: tensor<4x8xf32>, %p: i64, %n: index"
    with pytest.raises(TileError) as caught:
        parse_module(function(f"{arguments} => {_SAMPLES[sample]}"))
    assert caught.value.code == "T602"
