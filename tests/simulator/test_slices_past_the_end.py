"""A slice that ends past its buffer is valid, as in LLVM 19; the run and the check report accesses past the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module

UB, GM = "#hivm.address_space<ub>", "#hivm.address_space<gm>"
ENTRY = "attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>}"


def _kernel(space: str, start: int, size: int, step: int, dtype: str) -> str:
    """A copy of a slice of 16 elements to a tile in UB, or of a tile to it."""
    bits = {"f32": 4, "f16": 2, "i8": 1}[dtype]
    whole = f"memref<{16 * 32 // bits}x{dtype}, {GM if space == 'gm' else UB}>"
    layout = f"strided<[{step}], offset: {start}>"
    part = f"memref<{size}x{dtype}, {layout}, {GM if space == 'gm' else UB}>"
    tile = f"memref<{size}x{dtype}, {UB}>"
    buffer = "%g" if space == "gm" else "%b"
    op = {"gm": f"hivm.hir.load ins(%s : {part}) outs(%t : {tile})",
          "ub": f"hivm.hir.vadd ins(%s, %s : {part}, {part}) outs(%t : {tile})"}[space]
    made = "" if space == "gm" else f"%b = hivm.hir.pointer_cast(%c0) : {whole}"
    kind = whole if space == "gm" else f"memref<16x{dtype}, {GM}>"
    return f"""
func.func @k(%g: {kind}) {ENTRY} {{
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 65536 : i64
  {made}
  %t = hivm.hir.pointer_cast(%c1) : {tile}
  %s = memref.subview {buffer}[{start}] [{size}] [{step}] : {whole} to {part}
  {op}
  return
}}"""


@pytest.mark.parametrize("command", ["sim", "check"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("start", "size"), [(0, 1.5), (0.5, 1), (1, 0.5), (2, 0.25)])
@pytest.mark.parametrize("space", ["gm", "ub"])
def test_what_lies_past_the_end_is_found(space: str, start: float, size: float, dtype: str, command: str, tmp_path: Path,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    whole = 16 * 32 // {"f32": 4, "f16": 2}[dtype]
    text = _kernel(space, int(start * whole), int(size * whole), 1, dtype)
    parse_module(text)
    file = tmp_path / "kernel.mlir"
    file.write_text(text)
    assert main([command, str(file)]) == 1
    output = capsys.readouterr()
    assert "error[T502]" in output.err + output.out
    assert "kernel.mlir:8:" in output.err + output.out


def test_what_ends_in_time_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernel.mlir"
    file.write_text(_kernel("gm", 64, 64, 1, "f32"))
    assert main(["sim", str(file)]) == 0
