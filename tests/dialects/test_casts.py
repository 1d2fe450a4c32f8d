"""The list of casts that vcast knows, for both kinds of vector unit, through the op's own verifier."""

from __future__ import annotations

from itertools import product

import pytest

from dialects.helpers import Kernel
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hivm.casts import MEMORY_BASED, REGISTER_BASED
from tilelang_npu.dialects.hivm.enums import RoundModeAttr
from tilelang_npu.dialects.text import verify_module
from tilelang_npu.errors import TileError

TYPES = ("i1", "i4", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64", "f8E4M3FN",
         "f8E5M2")


def _accepted(target: str) -> set[tuple[str, str, str]]:
    found = set()
    for source, result, mode in product(TYPES, TYPES, RoundModeAttr.CASES):
        k = Kernel()
        module = k.module(hivm.VCastOp([k(f"8x{source} ub")], [k(f"8x{result} ub")], round_mode=mode), target=target)
        try:
            verify_module(module)
        except TileError as error:
            if "currently don't support cast" not in error.message:
                raise
        else:
            found.add((source, result, mode))
    return found


def test_memory_based() -> None:
    accepted = _accepted("Ascend910B3")
    assert len(accepted) == len(MEMORY_BASED) == 122
    assert accepted >= {("f32", "f16", "odd"), ("f16", "f32", "rint"), ("i8", "i1", "rint"),
                        ("i64", "i32", "truncwithoverflow"), ("bf16", "i32", "trunc"), ("i1", "f16", "trunc"),
                        ("f32", "f32", "floor")}
    assert not accepted & {("i8", "f32", "rint"), ("f16", "bf16", "rint"), ("f32", "bf16", "odd"), ("f16", "f32", "ceil"),
                           ("i32", "i8", "trunc"), ("f32", "f8E4M3FN", "rint")}


def test_register_based() -> None:
    accepted = _accepted("Ascend950PR_9599")
    assert len(accepted) == len(REGISTER_BASED) == 151
    assert accepted >= {("f32", "f8E4M3FN", "rint"), ("f8E5M2", "f32", "rint"), ("i64", "i8", "rint"), ("i8", "f32", "trunc")}
    assert _accepted("Ascend310B1") == accepted


@pytest.mark.parametrize(("source", "result", "cast", "message"), [
    ("i8", "f16", "cast_unsigned", ""),
    ("i16", "i1", "cast_unsigned", "uint16_t_to_bool_rintmode"),
    ("i1", "i32", "cast_unsigned", ""),
    ("ui8", "f16", "cast_signed", ""),
])
def test_signless_integers_may_be_read_as_unsigned(source: str, result: str, cast: str, message: str) -> None:
    k = Kernel()
    module = k.module(hivm.VCastOp([k(f"8x{source} ub")], [k(f"8x{result} ub")], cast=cast))
    if message:
        with pytest.raises(TileError, match=message):
            verify_module(module)
    else:
        verify_module(module)

