"""``opt``: passes over text, and errors for invalid text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

GOOD = """
func.func @f() {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.addi %0, %1 : i32
  return
}
"""
BAD = "func.func @g() {\n  %0 = arith.constant 1 : i33x\n  return\n}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "module.mlir"
    path.write_text(GOOD)
    return path


def test_without_passes_it_prints(tool, file: Path) -> None:
    done = tool("opt", file)
    assert done.code == 0, done.err
    assert done.out.count("arith.constant") == 2
    assert '"arith.constant"() <{value = 1 : i32}>' in tool("opt", file, "--print-op-generic").out
    assert f'loc("{file}":3' in tool("opt", file, "--print-locations").out


def test_passes_run_in_order(tool, file: Path) -> None:
    done = tool("opt", file, "-p", "tidy,tidy", "--print-between-passes", "--timing")
    assert done.out.count("// after tidy") == 1
    assert len(done.err.splitlines()) == 2
    assert "arith.addi" not in done.out


def test_output_file(tool, file: Path, tmp_path: Path) -> None:
    assert tool("opt", file, "-o", tmp_path / "out.mlir").out == ""
    assert "arith.addi" in (tmp_path / "out.mlir").read_text()


@pytest.mark.parametrize(
    ("passes", "advice"),
    [("tidyy", "did you mean tidy?"), ("tidy{", "first,second{option=value other=1}"),
     ("tidy{depth=3}", "pass tidy has no option 'depth'\n   = it has no options\n"),
     ("plan-memory{reuse=1}", "option reuse of pass plan-memory is true or false, not '1'")],
)
def test_bad_passes(tool, file: Path, passes: str, advice: str) -> None:
    done = tool("opt", file, "-p", passes)
    assert done.code == 1
    assert done.err.startswith("error[T805]")
    assert advice in done.err


def test_bad_text_is_shown_at_its_line(tool, file: Path) -> None:
    file.write_text(GOOD + "// -----\n" + BAD)
    done = tool("opt", file, "--split-input-file")
    assert done.code == 1
    assert f"{file}:10:" in done.err
    assert "i33x" in done.err


@pytest.mark.parametrize(("text", "modules"), [
    ("// -----\n" + GOOD, 2), (GOOD + "// -----\n", 2), ("", 1), ("// a comment\n// -----\n\n// -----\n" + GOOD, 3),
    (GOOD + "// -----\n  \n// -----\n" + GOOD, 3),
])
def test_an_empty_part_is_an_empty_module(tool, file: Path, text: str, modules: int) -> None:
    file.write_text(text)
    done = tool("opt", file, "--split-input-file")
    assert done.code == 0, done.err
    parts = done.out.split("// -----\n")
    assert len(parts) == modules
    assert [("arith.addi" in part) for part in parts] == [("arith.addi" in part) for part in text.split("// -----\n")]


def test_an_empty_text_on_its_own_is_a_mistake(tool, file: Path) -> None:
    file.write_text("// -----\n")
    assert "has only comments" in tool("opt", file).err


def test_verify_diagnostics_goes_on(tool, file: Path) -> None:
    file.write_text(BAD + "// -----\n" + GOOD)
    done = tool("opt", file, "--split-input-file", "--verify-diagnostics")
    assert done.code == 0
    assert "error[T601]" in done.out
    assert "arith.addi" in done.out


def test_standard_input(tool, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(GOOD))
    assert "arith.addi" in tool("opt").out


def test_list(tool) -> None:
    out = tool("opt", "--list").out
    assert "plan-memory{" in out
    assert "\ntidy\n    " in out


def test_a_place_that_cannot_be_written(tool, file: Path) -> None:
    done = tool("opt", file, "-o", file.parent)
    assert done.code == 1
    assert done.err.startswith(f"error[T801]: {file.parent}: ")


def test_not_text(tool, tmp_path: Path) -> None:
    (tmp_path / "x.mlir").write_bytes(b"\xff\xfe\x00")
    assert "error[T801]" in tool("opt", tmp_path / "x.mlir").err


def test_ops_of_dialects_that_are_not_known_on_demand(tool, file: Path) -> None:
    text = ('module {\n  func.func @f(%x: i32) {\n    %0 = "other.op"(%x) {a = #other.attr<x>} : (i32) -> !other.type<y>\n'
            "    return\n  }\n}\n")
    file.write_text(text)
    refused = tool("opt", file)
    assert refused.code == 1
    assert refused.err.startswith("error[T601]: unknown op other.op")
    assert f"--> {file}:3:10" in refused.err
    taken = tool("opt", file, "--allow-unregistered-dialect")
    assert taken.code == 0, taken.err
    assert taken.out == text
    assert tool("opt", file, "--allow-unregistered-dialect", "-p", "tidy").out == text
    file.write_text(text.replace('"other.op"(%x)', "other.op %x"))
    custom = tool("opt", file, "--allow-unregistered-dialect")
    assert custom.code == 1
    assert custom.err.startswith('error[T601]: other.op has only the generic form: "other.op"(...)')
    assert f"--> {file}:3:10" in custom.err


def test_passes_of_a_file(tool, file: Path, tmp_path: Path) -> None:
    """Lines of comments, as ``stages --pipeline`` prints them above each pipeline, are left out."""
    passes = tmp_path / "passes.txt"
    passes.write_text("// f\ntidy\n", encoding="utf-8")
    done = tool("opt", file, "-p", f"@{passes}")
    assert (done.code, done.out) == (0, tool("opt", file, "-p", "tidy").out)
    missing = tool("opt", file, "-p", f"@{tmp_path / 'none.txt'}")
    assert missing.code == 1
    assert "none.txt" in missing.err


KERNEL = """module {{
  func.func @{name}(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {{
    %zero = arith.constant 0.0 : f32
    %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
    tile.fill %zero into %x : f32 into memref<8x64xf32, #tile.scope<shared>>
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
    tile.copy %x to %Y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<gm>>
    return
  }}
}}
"""


def test_remarks(tool, tmp_path: Path) -> None:
    file = tmp_path / "kernel.mlir"
    file.write_text(KERNEL.format(name="k"), encoding="utf-8")
    done = tool("opt", file, "-p", "drop-dead-stores", "--remarks")
    assert (done.code, "tile.fill" in done.out) == (0, False)
    assert done.err.startswith("drop-dead-stores: ")
    assert "this write to x is removed" in done.err
    assert tool("opt", file, "-p", "drop-dead-stores").err == ""


@tilelang.jit(out_idx=[-1], target="npuir")
def scaled(rows: int, factor: float) -> Any:
    @T.prim_func
    def scaled(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(rows // 16, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 64), "float32")
            T.copy(X[block * 16, 0], x)
            T.vmul(x, factor, x)
            T.copy(x, Y[block * 16, 0])

    return scaled


def test_each_module_of_a_file_is_processed(tool, tmp_path: Path) -> None:
    """A script with two kernels is printed as two modules; the pipeline compiles each of them."""
    kernels = [scaled(32, 2.0), scaled(64, 3.0)]
    file = tmp_path / "kernels.mlir"
    file.write_text("// -----\n".join(kernel.mlir("tile") for kernel in kernels), encoding="utf-8")
    done = tool("opt", file, "-p", kernels[0].pipeline())
    assert done.code == 0, done.err
    assert done.out.split("// -----\n") == [kernel.mlir() for kernel in kernels]
