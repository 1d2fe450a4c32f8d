"""Nothing too much: take out any set with its waits, any flag between the cores, any barrier, and there is a hazard.

So it is of the events that mmadL1 sets and waits for itself.

That holds of what the compiler inserts, and of what the examples for Expert mode set by hand.
Which set meets which wait is read from the order in which the machine ran them, not from what the passes thought.
"""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from captured import KERNELS, Run, captured, copies
from tilelang_npu import TileError
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.effects import constant
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.runtime.factory import Factory
from tilelang_npu.simulator.machine.events import number_of
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run.program import Program

SYNC = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)
FOLDER = Path(__file__).resolve().parent.parent / "examples"
EXAMPLES = sorted(file for file in FOLDER.glob("*.py") if "expert" not in file.stem)
BY_HAND = sorted(file for file in FOLDER.glob("*.py") if "expert" in file.stem)
LONG: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "gemm_expert": ((256, 512, 1024), {}),
    "flash_attention_expert": ((256, 768, 128), {"ahead": 2}),
    "persistent_gemm_expert": ((256, 512, 1024), {"cores": 2}),
    "grouped_gemm_expert": ((256, 2, 256, 1024), {}),
    "causal_attention_expert": ((1, 768, 128), {"ahead": 2}),
    "decode_attention_expert": ((1, 8, 1, 1900, 64), {"splits": 2, "ahead": 2}),
    "multi_head_attention": ((3, 512, 1024), {"cores": 2}),
}
"""Where the first of an example's shapes needs no slot twice: one that does, and its tuning."""
SPARE = {
    "multi_head_attention": Counter({
        "hivm.hir.pipe_barrier[<PIPE_MTE2>]": 1,  # q, loaded again for the next tile, where i == 0
        "hivm.hir.pipe_barrier[<PIPE_FIX>]": 1,  # scores, stored again
        "hivm.hir.pipe_barrier[<PIPE_MTE3>]": 2,  # scaled and weights, stored again, elsewhere
        "hivm.hir.pipe_barrier[<PIPE_V>]": 3,  # share and result, across branches and loops
        "hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE3>, <PIPE_S>] flag = 1": 1,  # weights, beside the flag of the products
    }),
    "depthwise_conv": Counter({
        "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %turn2]": 1,  # the load of x, in front of a fill that only a cut tile has
        "hivm.hir.pipe_barrier[<PIPE_V>]": 1,  # that fill
        "hivm.hir.pipe_barrier[<PIPE_MTE3>]": 1,  # y, stored again, elsewhere
    }),
}
"""What the compiler inserts, not knowing better, where nothing meets without it at these sizes: by the first operation of each,
with what it is for. Not more, and not less: a compiler that knows better shortens the list."""


Site = tuple[Operation, int]
"""What synchronises: an operation, and which of its ``sync_related_args`` does; -1 where it is the operation."""
PASSED = range(4)
"""The ``sync_related_args`` of mmadL1 that are events with MTE2: two that it waits for, two that it sets."""


def _sites(module: ModuleOp) -> list[Site]:
    found: list[Site] = []
    for op in module.walk():
        if isinstance(op, SYNC):
            found.append((op, -1))
        elif isinstance(op, hivm.MmadL1Op) and op.sync_related_args:
            found += [(op, place) for place in PASSED if constant(op.sync_related_args[place]) != -1]
    return found


def _remove(site: Site) -> None:
    op, place = site
    block = op.parent_block()
    assert block is not None
    if place < 0:
        block.erase_op(op)
        return
    none = arith.ConstantOp(IntegerAttr(-1, i64))
    block.insert_op_before(none, op)
    op.operands[7 + place] = none.result


def _spelled(site: Site) -> str:
    op, place = site
    return str(op) if place < 0 else f"argument {place} of {op}"


def _units(program: Program, launch: Launch) -> Iterator[list[int]]:
    """What must be taken out together, as places among the sites: sets and waits that ever meet; a barrier alone."""
    sites = _sites(program.module)
    kernels = [op for op in program.module.walk()
               if isinstance(op, func.FuncOp) and op.body.blocks and "hacc.entry" in op.attributes]
    numbers = {site: number for number, site in enumerate(sites)}
    place: dict[tuple[int, int, int], int] = {}
    for index, (_, function) in enumerate(zip(kernels, program.functions, strict=True)):
        for op, record in zip(function.recorded, function.records, strict=True):
            for argument in (-1, *PASSED):
                if (op, argument) in numbers:
                    place[index, record.number, argument] = numbers[op, argument]
    assert len(set(place.values())) == len(sites)
    root = list(range(len(sites)))

    def find(number: int) -> int:
        while root[number] != number:
            number = root[number]
        return number

    for run in launch.distinct_blocks:
        order = launch._order([run])
        lanes = [index for index, _ in program.lanes]

        where = [place.get((lanes[step.core], number_of(run.streams[step.core][step.number]), step.step.place))
                 for step in order.steps]
        for one, step in zip(where, order.steps, strict=True):
            for two in (where[partner] for partner in step.partners):
                if one is not None and two is not None:  # a macro's own events are no ops
                    root[find(one)] = find(two)
    groups: dict[int, list[int]] = defaultdict(list)
    for number in range(len(sites)):
        groups[find(number)].append(number)
    yield from groups.values()


def _exempt(sites: list[Site]) -> bool:
    """The barrier that ends a kernel, and the events of a product's own two slots in L0."""
    ops = [op for op, _ in sites]
    if any(isinstance(op, hivm.PipeBarrierOp) and isinstance(op.next_op, func.ReturnOp) for op in ops):
        return True
    return all(isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp)) and op.pipes() == ("M", "MTE1") for op in ops)


def _idle(run: Run) -> list[str]:
    module = parse_module(run.text)
    program, blocks = Program(module), run.launch.blocks
    checked = check(program, copies(run.before), blocks)
    assert checked.hazards == [] and checked.errors == [] and checked.launch is not None
    idle = []
    units = list(_units(program, checked.launch))
    for unit in units:
        made = module.clone()
        all_of_it = _sites(made)
        sites = [all_of_it[number] for number in unit]
        if _exempt(sites):
            continue
        for site in sites:
            _remove(site)
        try:
            after = check(Program(made), copies(run.before), blocks)
        except TileError:
            continue
        if not after.hazards and not after.errors:
            idle.append("; ".join(_spelled(_sites(module)[number]) for number in unit))
    assert len(units) > 3
    return idle


def _in_long_loops(names: dict[str, Any]) -> None:
    """An example on two blocks, if it parts its work among blocks: each has so many tiles that every slot is taken again."""
    (factory,) = (value for value in names.values() if isinstance(value, Factory))
    shape, tuned = LONG.get(names["__name__"], (names["SHAPES"][0], {}))
    several = {"blocks": 2} if "blocks" in inspect.signature(factory.function).parameters else {}
    factory(*shape, **several, **tuned)(*names["inputs"](*shape))


@pytest.mark.parametrize("script", [*EXAMPLES, *KERNELS], ids=lambda script: script.stem)
def test_none_is_too_much(script: Path) -> None:
    for run in captured(script, _in_long_loops if script in EXAMPLES else None):
        assert Counter(each.split("; ")[0] for each in _idle(run)) == SPARE.get(script.stem, Counter())
        if "expert" not in script.stem:  # whose author holds all pipes
            assert not any(isinstance(op, hivm.PipeBarrierOp) and op.pipes() == ("ALL",)
                           for loop in parse_module(run.text).walk() if isinstance(loop, (scf.ForOp, scf.WhileOp))
                           for op in loop.walk())


@pytest.mark.parametrize("script", BY_HAND, ids=lambda script: script.stem)
def test_none_is_too_much_by_hand(script: Path) -> None:
    for run in captured(script, _in_long_loops):
        assert _idle(run) == []
