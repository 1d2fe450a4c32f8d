"""Remarks: copied with the operation, in no text, and given back to a module that was printed and read."""

from __future__ import annotations

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.remarks import Remark, Touched, WaitReason, collected, place, remark, remark_of, restore
from tilelang_npu.dialects.text import location_of, parse_module, print_module
from tilelang_npu.errors import Location

TEXT = """func.func @k() {
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  return
}
"""
LINE = Location("kernel.py", 7, 5)
SAID = Remark("insert-sync", reasons=(WaitReason("RAW", Touched("a", LINE, True), Touched("a", None, False), 64, 1),),
              source="MTE2", target="V", numbers=(0, 1), before=LINE, behind=True)


def _wait(module):
    return next(op for op in module.walk() if isinstance(op, hivm.WaitFlagOp))


def test_a_copy_has_the_remark_and_no_text_shows_it() -> None:
    module = parse_module(TEXT, "k.mlir")
    before, where = print_module(module), location_of(_wait(module))
    remark(_wait(module), Remark("guard-l0"))
    remark(_wait(module), SAID)
    assert remark_of(_wait(module.clone())) == SAID
    assert print_module(module) == before
    assert location_of(_wait(module)) == where
    assert place(place(_wait(module).location)) == place(_wait(module).location)


def test_a_module_that_was_printed_gets_its_remarks_back() -> None:
    module = parse_module(TEXT, "k.mlir")
    remark(_wait(module), SAID)
    read = parse_module(print_module(module), "k.mlir")
    assert remark_of(_wait(read)) is None
    restore(read, collected(module))
    assert remark_of(_wait(read)) == SAID
    assert [op.name for op in read.walk() if remark_of(op) is not None] == ["hivm.hir.wait_flag"]
