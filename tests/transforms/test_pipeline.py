"""The order of the passes, and errors of passes."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import InternalError, TileError
from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.hivm.insert_sync import InsertSync
from tilelang_npu.transforms.hivm.tidy import Tidy

KERNEL = """
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<64xf32, #tile.scope<shared>>
    tile.copy %X to %x : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #tile.scope<shared>>
    tile.copy %x to %X : memref<64xf32, #tile.scope<shared>> to memref<64xf32, #hivm.address_space<gm>>
  }
  return
}
"""


def test_every_stage_is_seen_once_and_in_order() -> None:
    seen: list[str] = []
    pipeline.lower(parse_module(KERNEL), pipeline.Options(), lambda name, _: seen.append(name))
    assert seen == pipeline.stage_names()
    assert seen[0] == "tile"
    assert seen[-1] == "hivm"
    assert "hivm-auto" in seen


def test_switched_off_synchronisation_is_that_within_statements() -> None:
    for synchronise in (True, False):
        found = dict(pipeline.kernel_passes(pipeline.Options(synchronise=synchronise)))
        assert found["insert-sync"] == InsertSync(by_hand=not synchronise)


def test_a_pass_that_trips_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def trip(self: Tidy, ctx: object, op: ModuleOp) -> None:
        raise KeyError("x")

    monkeypatch.setattr(Tidy, "apply", trip)
    with pytest.raises(InternalError, match="hivm-auto failed: KeyError: 'x'"):
        pipeline.lower(parse_module(KERNEL), pipeline.Options())


def test_a_mistake_of_the_user_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Tidy, ctx: object, op: ModuleOp) -> None:
        raise TileError("no", code="T000")

    monkeypatch.setattr(Tidy, "apply", refuse)
    with pytest.raises(TileError, match="T000"):
        pipeline.lower(parse_module(KERNEL), pipeline.Options())


def test_a_module_that_does_not_verify_is_the_passes_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(self: Tidy, ctx: object, op: ModuleOp) -> None:
        function = next(iter(op.ops))
        last = function.regions[0].block.last_op
        assert last is not None
        last.detach()

    monkeypatch.setattr(Tidy, "apply", spoil)
    with pytest.raises(InternalError, match="after hivm-auto the module does not verify"):
        pipeline.lower(parse_module(KERNEL), pipeline.Options())
    with pytest.raises(InternalError):  # found after the last pass, or by a pass that fails on it
        pipeline.lower(parse_module(KERNEL), pipeline.Options(), each=False)
