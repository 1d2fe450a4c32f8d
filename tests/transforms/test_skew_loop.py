"""A loop whose statements work on different iterations: ring buffers for the data between them, in one loop or in three."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.analysis.loop_body import LoopBody, is_statement, loop_body_of, statement_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.transforms.infra.skew_loop import Piece, SkewedLoop, rings_of

TEXT = """func.func @k(%X: memref<256x64xf32, #hivm.address_space<gm>>, %Y: memref<256x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    scf.for %i = %c0 to %c4 step %c1 {
      %x = tile.alloc "x" : memref<64x64xf32, #hivm.address_space<ub>>
      %y = tile.alloc "y" : memref<64x64xf32, #hivm.address_space<ub>>
      %row = arith.muli %i, %c64 : index
      %from = tile.region %X[%row, 0] [64, 64] keep [0, 1] : memref<256x64xf32, #hivm.address_space<gm>>
          to memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %from to %x : memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
          to memref<64x64xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<64x64xf32, #hivm.address_space<ub>>)
          outs(%y : memref<64x64xf32, #hivm.address_space<ub>>)
      %to = tile.region %Y[%row, 0] [64, 64] keep [0, 1] : memref<256x64xf32, #hivm.address_space<gm>>
          to memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %y to %to : memref<64x64xf32, #hivm.address_space<ub>>
          to memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    }
  }
  return
}
"""


def read() -> tuple[ModuleOp, scf.ForOp, LoopBody]:
    module = parse_module(TEXT)
    loop = next(op for op in module.walk() if isinstance(op, scf.ForOp))
    statements = [statement_of(op, "AIV") for op in loop.body.block.ops if is_statement(op)]
    return module, loop, loop_body_of(loop, statements, Ranges())


def labels(counts: object) -> dict[str, object]:
    assert isinstance(counts, dict)
    return {value.root.owner.label.data: count for value, count in counts.items()}


@pytest.mark.parametrize(("lags", "rings", "touched"), [
    ((0, 1, 1), {"x": 2}, {"x": [0, 1], "y": [1, 1]}),
    ((0, 2, 3), {"x": 3, "y": 2}, {"x": [0, 2], "y": [2, 3]}),
    ((0, 0, 0), {}, {"x": [0, 0], "y": [0, 0]}),
])
def test_a_value_has_a_slot_for_each_iteration_between(lags: tuple[int, ...], rings: dict[str, int],
                                                       touched: dict[str, list[int]]) -> None:
    _, _, body = read()
    found = rings_of([Piece(lag, [each]) for lag, each in zip(lags, body.statements, strict=True)], body.own)
    assert tuple(map(labels, found)) == (rings, touched)


@pytest.mark.parametrize("in_three", [False, True])
@pytest.mark.parametrize("lag", [1, 3])
def test_one_loop_with_conditions_or_three_without(lag: int, in_three: bool) -> None:
    module, loop, body = read()
    pieces = [Piece(0, body.statements[:1]), Piece(lag, body.statements[1:])]
    rings, lags = rings_of(pieces, body.own)
    skew = SkewedLoop(loop, body.own, pieces, rings, lags)
    (skew.rewrite_with_prologue if in_three else skew.rewrite_with_conditions)()
    module.verify()
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    inside = [sum(isinstance(op, scf.IfOp) for op in each.body.block.ops) for each in loops]
    assert inside == ([1, 0, 1] if in_three else [2])
    shapes = {op.label.data: op.result.type.get_shape() for op in module.walk() if isinstance(op, tile.AllocOp)}
    assert shapes["x"] == (lag + 1, 64, 64) and shapes["y"] == (64, 64)
