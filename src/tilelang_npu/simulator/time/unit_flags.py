"""Unit flags: the handshake of pipe M and pipe FIX of a core on blocks of L0C.

Each block of L0C has a flag. A product with unit flags (pipe M) waits until the flags of its blocks are clear, and sets them
unless it keeps the blocks for the next product. A fixpipe with unit flags waits until the flags of its blocks are set, and
clears them. No other instruction waits for a flag or changes one.

In program order, the flags that an op needs must be set or cleared before it: the other pipe waits for nothing but its own
queue, and each op waits for the last earlier op of the other pipe that released one of its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.machine.op_records import OpRecord
from tilelang_npu.simulator.time.pipe_steps import PIPE, RELEASE, UNIT, PipeStep

_M, _FIX = PIPE["M"], PIPE["FIX"]


@dataclass
class UnitFlags:
    """The flags of the blocks of L0C of one core, in program order.

    Attributes:
        passed: the blocks whose flag is set, as a bit mask.
        passed_by: the ops that set flags, each with the blocks whose flags it set last.
        places: for each of the two pipes, the position in the step order of each release, by the release's number.
    """

    passed: int = 0
    passed_by: list[tuple[int, OpRecord]] = field(default_factory=list)
    places: dict[int, dict[int, int]] = field(default_factory=lambda: {_M: {}, _FIX: {}})
    _counts: dict[int, int] = field(default_factory=lambda: {_M: 0, _FIX: 0})
    _last: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: {_M: [], _FIX: []})
    strict: bool = True

    def issued(self, step: PipeStep, record: OpRecord) -> PipeStep:
        """Returns a ``JOIN`` or ``RELEASE`` step with its number, and changes the flags as the step does.

        Args:
            step: the step, which is the next one in program order.
            record: the record of the step's op, for messages.

        Raises:
            TileError: S307, the step waits for flags that no earlier op sets or clears.
        """
        blocks = step.blocks
        self.strict = self.strict and step.flag != "maybe"
        if step.kind != RELEASE:
            if self.strict:
                self._require(step, record)
            numbers = [number for mask, number in self._last[step.other] if mask & blocks]
            return step._replace(number=max(numbers, default=-1))
        number = self._counts[step.pipe]
        self._counts[step.pipe] += 1
        kept = [(mask & ~blocks, earlier) for mask, earlier in self._last[step.pipe]]
        self._last[step.pipe] = [*((mask, earlier) for mask, earlier in kept if mask), (blocks, number)]
        self.passed_by = [(mask & ~blocks, by) for mask, by in self.passed_by if mask & ~blocks]
        if step.pipe == _M:
            self.passed |= blocks
            self.passed_by.append((blocks, record))
        else:
            self.passed &= ~blocks
        return step._replace(number=number)

    def _require(self, step: PipeStep, record: OpRecord) -> None:
        """Raises S307 if the flags of the step's blocks are not as the step needs them."""
        wrong = step.blocks & (self.passed if step.pipe == _M else ~self.passed)
        if not wrong:
            return
        count, first = wrong.bit_count(), (wrong & -wrong).bit_length() - 1
        part = f"{count} of its {step.blocks.bit_count()} blocks of L0C, the first at byte {first * UNIT}"
        if step.pipe == _M:
            by = next(by for mask, by in self.passed_by if mask & wrong)
            raise TileError(f"the product waits for ever for {part}: a product has passed them on{_line(by)}, and no copy with "
                            "a unit flag has taken them", code="S307", location=record.location,
                            help="copy the blocks out with a unit flag before this product, or let the product before it keep "
                                 "them (unit_flag=0b10)")
        raise TileError(f"the copy out of L0C waits for ever for {part}: no product with a unit flag has passed them on",
                        code="S307", location=record.location,
                        help="copy only what the product has computed, and let the last product before the copy pass its "
                             "blocks on (unit_flag=0b11)")


def _line(record: OpRecord) -> str:
    return "" if record.location is None else f" in line {record.location.line}"


__all__ = ["UnitFlags"]
