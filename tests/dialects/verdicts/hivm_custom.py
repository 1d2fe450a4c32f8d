"""The rules for calls of user-defined device functions, which depend on attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, StringAttr, TensorType
from xdsl.ir import Attribute, TypeAttribute

from dialects.verdicts.hivm_judged import Judged, need
from tilelang_npu.dialects import hivm

_NO_PIPE = hivm.PipeAttr("PIPE_UNASSIGNED")
_OWN = ("__builtin_gather_load", "__builtin_index_select", "__builtin_indirect_atomic", "__builtin_histogram")
_FACTS: dict[str, Attribute] = {
    "hivm.tcore_type": hivm.CoreTypeAttr("VECTOR"),
    "hivm.vf_mode": hivm.VFModeAttr("SIMT"),
    "hivm.pipe": hivm.PipeAttr("PIPE_V"),
}


def _custom(judged: Judged, _: str) -> None:
    name, stated = judged.op.properties["name"], judged.op.attributes
    assert isinstance(name, StringAttr)
    macro = judged.op.name.endswith("_macro")
    if name.data in _OWN and not macro:  # CustomMacroOp::kBuiltins is empty
        for fact, own in _FACTS.items():
            need(stated.get(fact, own) in (own, _NO_PIPE), f"{fact} of the toolchain's function")
        return
    _scratch(stated.get("extra_buffers_types"), stated.get("extra_buffers_sizes"))
    core = stated.get("hivm.tcore_type")
    need(isinstance(core, hivm.CoreTypeAttr), "a core")
    module = judged.op.get_toplevel_object()
    target = str(getattr(module, "attributes", {}).get("hacc.target", ""))
    if ("Ascend950" in target or "Ascend910_95" in target) and core != hivm.CoreTypeAttr("CUBE"):
        need(isinstance(stated.get("hivm.vf_mode"), hivm.VFModeAttr), "a mode")
    for pipe in ("hivm.pipe_in", "hivm.pipe_out") if macro else ("hivm.pipe",):
        need(isinstance(stated.get(pipe), hivm.PipeAttr) and stated[pipe] != _NO_PIPE, "a pipe")
    symbol = stated.get("symbol")
    need(isinstance(symbol, StringAttr) and bool(symbol.data), "a symbol")


def _scratch(types: Attribute | None, sizes: Attribute | None) -> None:
    # an attribute of another kind counts as none
    need(isinstance(types, ArrayAttr) == isinstance(sizes, ArrayAttr), "types and sizes of the scratch")
    if isinstance(types, ArrayAttr) and isinstance(sizes, ArrayAttr):
        need(len(types) == len(sizes) and all(isinstance(each, TypeAttribute) for each in types), "a type for each size")
        need(all(isinstance(each, IntegerAttr) and each.value.data >= 0 for each in sizes), "sizes of the scratch")


def _in_place(judged: Judged, _: str) -> None:
    given = judged.op.attributes.get("arg_attrs")
    if not isinstance(given, ArrayAttr):
        return
    inputs, outputs = len(judged.held["inputs"]), len(judged.held["outputs"])
    taken = set()
    for place, entry in zip(range(inputs), given, strict=False):
        out = entry.data.get("inplace_outs") if isinstance(entry, DictionaryAttr) else None
        if out is None:
            continue
        need(isinstance(out, IntegerAttr), "number of an output")
        number = out.value.data if isinstance(out, IntegerAttr) else -1
        need(0 <= number < outputs and number not in taken, "an output, once")
        taken.add(number)
        value, other = judged.op.operands[place], judged.op.operands[inputs + number]
        need(value is other and isinstance(value.type, (TensorType, MemRefType)), "the output itself")


def _slots(judged: Judged, _: str) -> None:
    stated = judged.op.attributes.get("sync_event_slots", ArrayAttr([]))
    need(isinstance(stated, ArrayAttr), "a list of slots")
    assert isinstance(stated, ArrayAttr)
    slots = [slot.data for slot in stated if isinstance(slot, hivm.SyncEventSlotAttr)]
    need(len(judged.held["sync_related_args"]) in (0, len(slots)), "an argument for each slot")
    reserved = set()
    for set_pipe, wait_pipe, mode, event in slots:
        need(mode == "internal" or None not in (set_pipe, wait_pipe), "pipes of a slot")
        if event is not None:
            place = (event,) if mode == "internal" else (event, set_pipe, wait_pipe)
            need(place not in reserved, "an event once")
            reserved.add(place)


CUSTOM: dict[str, Callable[[Any, str], None]] = {"custom": _custom, "in_place": _in_place, "slots": _slots}
