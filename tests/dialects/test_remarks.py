"""Remarks: copied with the operation, in no text, and given back to a module that was printed and read."""

from __future__ import annotations

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer, Rounds, Smaller, Stages, SwitchedOn, Unpinned
from tilelang_npu.dialects.ir.remarks import (
    DONE,
    REFUSED,
    Held,
    Placed,
    Points,
    Remark,
    Scoped,
    Touched,
    Turns,
    WaitReason,
    Waits,
    add_remark,
    module_remarks,
    record_done,
    record_refusal,
    remark_of,
    remarks_as_json,
    restore_remarks,
    set_remark,
    strip_remarks,
)
from tilelang_npu.dialects.text import location_of, parse_module, print_module
from tilelang_npu.errors import Location

TEXT = """func.func @k() {
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  return
}
"""
LINE = Location("kernel.py", 7, 5)
SAID = Remark("insert-sync", facts=Waits((WaitReason("RAW", Touched("a", LINE, True), Touched("a", None, False), 64, 1),),
                                         "MTE2", "V", (0, 1), LINE, after_loop=True))
OF_THE_WHOLE = (
    Remark("vectorise-parallel", DONE, "vectorise-parallel", LINE, "exp",
           facts=Points((8, None), (0, 2), ("exp",), ("x",), ("y",), 4)),
    Remark("sink-buffers", REFUSED, "multi-buffer", None, "there is no room", "shrink the tiles",
           Held(("k", "v"), "ub", shared=True), Smaller((LINE, None), 66)),
    Remark("plan-memory", facts=Placed("k", 1, 0, 2, 64, "ub", 1024, (2, 5), (7, 9))),
    Remark("infer-scopes", DONE, place=LINE, facts=Scoped("k", ("ub", "cbuf"))),
    Remark("overlap-iterations", DONE, place=LINE, facts=Turns(2, ("k",), ("cbuf",))),
    Remark("collapse-copies", REFUSED, place=LINE, change=Stages(LINE, 2)),
    Remark("collapse-copies", REFUSED, place=LINE, change=OwnBuffer("k", LINE, None)),
    Remark("bind-sub-blocks", REFUSED, place=LINE, change=Unpinned(LINE)),
    Remark("overlap-iterations", REFUSED, place=LINE, change=Rounds(LINE, 24)),
    Remark("hoist-loads", REFUSED, place=LINE, change=InFront(LINE, LINE)),
    Remark("sink-buffers", REFUSED, "multi-buffer", LINE, change=SwitchedOn("sink-buffers")),
)


def _wait(module):
    return next(op for op in module.walk() if isinstance(op, hivm.WaitFlagOp))


def test_a_copy_has_the_remark_and_no_text_shows_it() -> None:
    module = parse_module(TEXT, "k.mlir")
    before, where = print_module(module), location_of(_wait(module))
    set_remark(_wait(module), Remark("guard-l0"))
    set_remark(_wait(module), SAID)
    assert remark_of(_wait(module.clone())) == SAID
    assert print_module(module) == before
    assert location_of(_wait(module)) == where
    assert strip_remarks(strip_remarks(_wait(module).location)) == strip_remarks(_wait(module).location)


def test_a_module_that_was_printed_gets_its_remarks_back() -> None:
    module = parse_module(TEXT, "k.mlir")
    set_remark(_wait(module), SAID)
    read = parse_module(print_module(module), "k.mlir")
    assert remark_of(_wait(read)) is None
    restore_remarks(read, remarks_as_json(module))
    assert remark_of(_wait(read)) == SAID
    assert [op.name for op in read.walk() if remark_of(op) is not None] == ["hivm.hir.wait_flag"]


def test_remarks_without_an_operation_are_on_the_module_in_order() -> None:
    module = parse_module(TEXT, "k.mlir")
    before = print_module(module, locations=True)
    for report in OF_THE_WHOLE:
        add_remark(module, report)
    set_remark(_wait(module), SAID)
    assert tuple(module_remarks(module)) == tuple(module_remarks(module.clone())) == OF_THE_WHOLE
    assert print_module(module, locations=True) == before
    read = parse_module(print_module(module), "k.mlir")
    restore_remarks(read, remarks_as_json(module))
    assert tuple(module_remarks(read)) == OF_THE_WHOLE
    assert tuple(module_remarks(read, Placed, Turns)) == (OF_THE_WHOLE[2], OF_THE_WHOLE[4])
    assert remark_of(_wait(read)) == SAID


def test_what_was_done_and_refused_is_of_the_optimisation_or_of_another_pass() -> None:
    module = parse_module(TEXT, "k.mlir")
    record_done(module, "banks", LINE, "in the other half", maker="plan-memory")
    record_refusal(module, "banks", None, "no room", "shrink the tiles")
    assert tuple(module_remarks(module)) == (Remark("plan-memory", DONE, "banks", LINE, "in the other half"),
                                   Remark("banks", REFUSED, "banks", None, "no room", "shrink the tiles"))
