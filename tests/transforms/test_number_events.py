"""A barrier that replaces an event of the author has a remark."""

from __future__ import annotations

from pathlib import Path

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.ir.remarks import Remark, Waits, remark_of
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.transforms.tile.number_events import NumberEvents

CASE = Path(__file__).resolve().parents[1] / "filecheck" / "number-events" / "ninth_event_becomes_a_barrier.mlir"


def test_a_barrier_in_place_of_an_event_is_not_reported_as_the_authors() -> None:
    module = parse_module(CASE.read_text(), CASE.name)
    NumberEvents().apply(make_context(), module)
    report = {type(op): remark_of(op) for op in module.walk() if isinstance(op, (hivm.PipeBarrierOp, hivm.SetFlagOp))}
    assert report == {hivm.SetFlagOp: None, hivm.PipeBarrierOp: Remark(
        "number-events", text="this full barrier replaces event 10, because only 8 events exist",
        facts=Waits(source="ALL", target="ALL"))}
