"""Detection of misaligned addresses in UB and L1 (S223).

DMA and vector instructions access these memories in blocks of 32 bytes, so each operand and each of its rows must begin at a
multiple of 32 bytes, except where the op table states another number for an operation's inputs. On the chip an op that begins
elsewhere faults or accesses the wrong bytes. Accesses of the scalar unit need no alignment. Limits of single instructions, such
as 255 repeats of a vector instruction or strides of at most 65535 of a DMA, are not checked, because the toolchain's library
splits an op that exceeds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilelang_npu.simulator.machine.op_records import Access, Footprint, footprint, number_of
from tilelang_npu.simulator.machine.repeated_events import kept_events
from tilelang_npu.simulator.run.recorded_launch import BlockRun, RecordedLaunch
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.sanitizer.uninitialised_memory import site_of
from tilelang_npu.target import name_of


def find_misaligned(recorded: RecordedLaunch, runs: Sequence[BlockRun]) -> Iterator[Hazard]:
    """Yields a hazard for each operand that is misaligned: the first execution in which the operand, or one of its rows, does
    not begin at a multiple of the memory's block size.

    Args:
        recorded: the record of the launch.
        runs: the blocks to check; blocks with equal event streams are checked once.
    """
    program = recorded.program
    blocked = {name for name, memory in program.chip.memory.items() if memory.block}
    done = set()
    for run in runs:
        for lane, ((index, _), stream) in enumerate(zip(program.lanes, run.streams, strict=True)):
            if (index, id(stream)) in done:
                continue
            done.add((index, id(stream)))
            left = [[access for access in record.accesses if access.memory in blocked and access.pipe != "S"]
                    for record in program.functions[index].records]
            for event in dict.fromkeys(kept_events(stream)):
                record = program.functions[index].records[number_of(event)]
                for access in tuple(left[record.number]):
                    block = access.alignment or program.chip.memory[access.memory].block
                    where = footprint(access, event).simplified()
                    start = None if where.empty else _odd(where, block)
                    if start is not None or _is_fixed(access):
                        left[record.number].remove(access)
                    if start is not None:
                        step = -(-block // access.element)
                        repair = (f"begin at a multiple of {step} elements" if start == where.offset else
                                  f"let rows begin a multiple of {step} elements apart")
                        site = site_of(recorded, run, lane, stream.index(event), record, access.pipe, access.name)
                        what = (f"{record.mnemonic} begins{'' if start == where.offset else ' a row'} at byte {start} of "
                                f"{name_of(access.memory)}{access.label and f', in {access.label}'}, which is no multiple of "
                                f"{block}: {repair}")
                        yield Hazard("S223", "address", site, None, name_of(access.memory), start, where.end, what, run.block,
                                     access.label)


def _is_fixed(access: Access) -> bool:
    """Whether an access has the same footprint whenever its op is executed."""
    return all(isinstance(part, int) for part in (access.offset, *access.sizes, *access.strides))


def _odd(where: Footprint, block: int) -> int | None:
    """Returns the byte offset of the first row of a footprint that begins at no multiple of ``block``; None for no such row."""
    if where.offset % block:
        return where.offset
    for size, stride in zip(where.sizes, where.strides, strict=True):
        if size > 1 and stride != where.element and stride % block:
            return where.offset + stride
    return None
