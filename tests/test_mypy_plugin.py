"""The types that the mypy plugin gives to kernels: annotations of the language, and missing annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

KERNEL = """\
import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.language import Tensor

@tilelang.jit(target="npuir")
def factory(M, tile=8):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: Tensor[(M,), "int8"], n: T.int32, x: T.float16, s: str):
        pass
    return main

@T.macro
def inside(a, b: T.Tensor):
    pass

def helper(a, b: int) -> str:
    return ""

@tilelang.jit
def numbers(a) -> int:
    return 3

def untouched(a):
    pass
"""


def declared(text: str, tmp_path: Path, **options: Any) -> dict[str, tuple[list[str], str] | None]:
    """The types of each function, as mypy reads the file with the plugin."""
    from mypy.errors import Errors
    from mypy.fastparse import parse
    from mypy.options import Options
    from mypy.types import CallableType, UnboundType

    from tilelang_npu.mypy_plugin import KernelPlugin, _functions

    path = tmp_path / "kernels.py"
    path.write_text(text)
    settings = Options()
    for name, value in options.items():
        setattr(settings, name, value)
    tree = parse(text, str(path), "kernels", Errors(settings), settings)
    tree._fullname, tree.path = "kernels", str(path)
    assert KernelPlugin(settings).get_additional_deps(tree) == []

    def shown(kind: Any) -> str:
        return kind.name if isinstance(kind, UnboundType) else type(kind).__name__

    found: dict[str, tuple[list[str], str] | None] = {}
    for function, _ in _functions(tree.defs):
        made = function.type
        found[function.name] = ([shown(kind) for kind in made.arg_types], shown(made.ret_type)) if isinstance(
            made, CallableType) else None
    return found


def test_annotations_of_kernels_are_types_and_what_is_left_out_is_any(tmp_path: Path) -> None:
    found = declared(KERNEL, tmp_path)
    assert found["main"] == (["T.Tensor", "Tensor", "int", "float", "str"], "NoneType")
    assert found["factory"] == (["AnyType", "AnyType"], "T.PrimFunc")
    assert found["inside"] == (["AnyType", "T.Tensor"], "AnyType")
    assert found["numbers"] == (["AnyType"], "int")
    assert found["untouched"] is None
    helper = found["helper"]
    assert helper is not None
    assert helper[1] == "str"  # others are left as they are written


def test_a_file_without_the_language_is_left_alone(tmp_path: Path) -> None:
    text = KERNEL.replace("import tilelang_npu.language as T\n", "import other as T\n").replace(
        "from tilelang_npu.language import Tensor", "Tensor = T.Tensor")
    found = declared(text, tmp_path)
    assert found["factory"] is None
    main = found["main"]
    assert main is not None
    assert "T.Tensor" not in main[0]
    assert "int" not in main[0]


def test_every_statement_that_holds_kernels_is_looked_into(tmp_path: Path) -> None:
    kernel = "    @T.prim_func\n    def {name}(A: T.Tensor((4,), 'int8')):\n        pass\n"
    text = "import tilelang.language as T\n" + "".join(
        f"{head}\n{kernel.format(name=f'k{place}')}" for place, head in enumerate(
            ("if a:", "else:", "for i in a:", "while a:", "with a:", "try:", "except ValueError:", "finally:", "class C:",
             "def f():")))
    found = declared(text, tmp_path)
    assert {name: kinds for name, kinds in found.items() if name != "f"} == {
        f"k{place}": (["T.Tensor"], "NoneType") for place in range(10)}
