"""Every name of the language: its origin, the error for an unknown name, the cost of importing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import tilelang_npu.language as T
from tilelang_npu import TileError, ops
from tilelang_npu.language.unsupported import ELSEWHERE, NAMES


def test_importing_the_language_does_not_import_the_framework() -> None:
    code = ("import sys, tilelang_npu.language as T; T.symbolic('M') * 2; T.ceildiv(5, 2); T.Tensor((3,), 'int8')\n"
            "@T.prim_func\ndef main(n: T.int32): pass\n"
            "assert not [name for name in sys.modules if name.split('.')[0] in ('xdsl', 'torch')], sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("entry", list(ops.elementwise()), ids=lambda entry: entry.name)
def test_every_name_of_the_table_is_a_function(entry: ops.Elementwise) -> None:
    for name in (entry.name, *entry.aliases):
        found = getattr(T.tile, name.removeprefix("tile.")) if name.startswith("tile.") else getattr(T, name)
        assert callable(found)


def test_functions_say_how_they_are_called() -> None:
    import inspect

    assert str(inspect.signature(T.tile.add)) == "(dst: 'Tile', src0: 'Tile', src1: 'Operand') -> 'None'"
    assert str(inspect.signature(T.vadd)) == "(A: 'Tile', B: 'Operand', C: 'Tile') -> 'None'"
    assert str(inspect.signature(T.npuir_exp)) == "(A: 'Tile', B: 'Tile') -> 'None'"
    assert str(inspect.signature(T.vselect)) == "(Cond: 'Tile', A: 'Operand', B: 'Operand', Out: 'Tile') -> 'None'"
    assert str(inspect.signature(T.vexp2)) == "(A: 'Tile', B: 'Tile', Tmp: 'Tile | None' = None) -> 'None'"
    assert str(inspect.signature(T.tile.clamp)) == (
        "(out: 'Tile', buffer: 'Tile', min_scalar: 'Operand', max_scalar: 'Operand', count: 'Number | None' = None, *, "
        "tmp: 'Tile | None' = None) -> 'None'")
    assert T.tile.add.__doc__ == """Sum of two elements.

Writes ``dst``, reads ``src0`` and ``src1``. All buffers have the same shape; an input with size 1
along an axis is repeated along it. ``src1`` may be a scalar. ``dst`` may be an input itself.

Element types: int8, int16, int32, int64, float16, float32.

Example: ``T.tile.add(out, a, b)``"""
    assert T.tile.add.__qualname__ == "T.tile.add"
    assert T.npuir_brc is T.vbrc
    assert T.tile.log is not None


def test_names_of_other_languages_are_none_of_this_one() -> None:
    for name, advice in ELSEWHERE.items():
        assert not hasattr(T, name)
        named = re.findall(r"\bT\.((?:tile\.)?\w+)", advice)
        for one in named:
            assert hasattr(T.tile, one.removeprefix("tile.")) if one.startswith("tile.") else hasattr(T, one), (name, one)


@pytest.mark.parametrize(("name", "suggestion"), [
    ("cpoy", "T.copy"), ("gem_v0", "T.gemm_v0"), ("alloc_UB", "T.alloc_ub"), ("tile.reciprocl", "T.tile.reciprocal"),
    ("npuir_addd", "T.npuir_add"),
])
def test_a_wrong_name_gets_a_suggestion(name: str, suggestion: str) -> None:
    place = T.tile if name.startswith("tile.") else T
    with pytest.raises(TileError) as caught:
        getattr(place, name.removeprefix("tile."))
    assert caught.value.code == "T140"
    assert caught.value.help == f"did you mean {suggestion}?"
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(place, name.removeprefix("tile."))


def test_a_name_like_no_other() -> None:
    with pytest.raises(AttributeError) as caught:
        T.zzzzzz  # noqa: B018
    assert isinstance(caught.value, TileError)
    assert caught.value.help == "dir(T) lists the names that exist, with those of loaded plug-ins (--load FILE.py)"


@pytest.mark.parametrize("name", [*sorted(NAMES), "vmulext"])
def test_what_the_machine_has_nothing_for_says_what_to_use(name: str) -> None:
    found = getattr(T, name)
    with pytest.raises(TileError, match=rf"T\.{name} is not supported") as caught:
        found(1, 2)
    assert caught.value.code == "T190"
    assert caught.value.help
    with pytest.raises(TileError, match="not supported"), found:
        pass


def test_the_directory_lists_what_can_be_used() -> None:
    names = dir(T)
    assert {"copy", "gemm", "vadd", "npuir_add", "exp", "Tensor", "float16", "Parallel"} <= set(names)
    assert {"add", "fill", "cast", "exp"} <= set(dir(T.tile))
    for name in [name for name in names if not name.startswith("_") and name != "TYPE_CHECKING"]:
        getattr(T, name)


def test_types_are_strings_casts_and_annotations() -> None:
    assert T.float16 == "float16"
    assert {T.int32: 1}["int32"] == 1
    assert T.float32(2) == 2.0
    assert T.int32(2.9) == 2
    assert T.bool(3) is True
    assert T.float16(0.1) == 0.0999755859375
    assert T.float16.bits == 16
    assert T.Buffer is T.Tensor
    assert T.Tensor((4, 8), T.int8).dtype == "int8"
    assert T.Tensor[(4, 8), "int8"].shape == T.Tensor[4, 8, "int8"].shape == (4, 8)
    assert T.Tensor(5).shape == (5,)
    assert T.Tensor[(5,)].dtype == "float32"
    with pytest.raises(TileError, match=r"argument 'scope' is not supported yet"):
        T.Tensor((4,), "int8", scope="global")


def test_element_types_are_torchs_too() -> None:
    torch = pytest.importorskip("torch")
    for name in ("float16", "bfloat16", "float32", "int8", "int64", "uint8", "bool", "float8_e4m3fn"):
        assert getattr(T, name).as_torch() is getattr(torch, name)
