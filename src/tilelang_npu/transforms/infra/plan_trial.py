"""Base of passes that try out memory planning before they rewrite the module.

Such a pass runs the rest of the pipeline, up to ``plan-memory``, on a rewritten copy of the module, and rewrites the module
only if all buffers of the copy have room. The later passes depend on the options of the compilation, so such a pass has these
options as its own options. ``opt -p`` with the text of the pass therefore gives the same result as the pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.ir.remarks import REFUSED, Held, Scoped, module_remarks
from tilelang_npu.errors import TileError
from tilelang_npu.source_dialects import SourceDialect
from tilelang_npu.target import name_of
from tilelang_npu.target.chip_data import BufferSpace
from tilelang_npu.transforms.infra.options import Options
from tilelang_npu.transforms.infra.stage_table import kernel_rows

__all__ = ["PassWithPlanTrial", "PlanTrial"]

_LEFT_OUT = ("chip", "mask_tails")
"""The options that a pass with a trial does not have under the same name: the chip, of which it has the name, and an option of
passes that only earlier stages run."""


@dataclass(frozen=True)
class PlanTrial:
    """The result of memory planning on a copy of a module.

    Attributes:
        error: the first error, which usually names the memory that has no room; None if no pass failed.
        lost: the buffers that have fewer slots than pipelined loops ask for, as (name, memory).
        shared: the buffers that share bytes such that operations wait for each other, as (name, memory).
    """

    error: TileError | None = None
    lost: frozenset[tuple[str, BufferSpace]] = frozenset()
    shared: frozenset[tuple[str, BufferSpace]] = frozenset()

    @property
    def lack(self) -> str | None:
        """The message of the error; None if no pass failed."""
        return None if self.error is None else self.error.message

    def why_worse_than(self, other: PlanTrial) -> str | None:
        """Returns why operations possibly wait longer with this plan than with another one; None if they do not."""
        if self.lack is not None:
            return f"memory planning finds no room: {self.lack}"
        for buffers, how in ((self.lost - other.lost, "would not have all its slots"),
                             (self.shared - other.shared, "would share bytes, and its users would wait for those of another "
                                                          "buffer")):
            if buffers:
                label, space = min(buffers)
                return f"{name_of(space)} has too little room for the slots of all buffers: {label} {how}"
        return None


@dataclass(frozen=True)
class PassWithPlanTrial(ModulePass):
    """Base of passes that run memory planning on a copy of the module, to decide whether a rewrite leaves enough memory.

    Attributes:
        chip: the chip whose memories must have room.
        enabled: whether the optimisation of the pass is on.
        dialect, synchronise, cross_synchronise, reuse, multi_buffer, divide, upstream, without: the options of the
            compilation with which the later passes of the trial are created (see ``transforms/infra/options.py``).
    """

    chip: str = chips.DEFAULT
    enabled: bool = True
    dialect: SourceDialect = "npuir"
    synchronise: bool = True
    cross_synchronise: bool = True
    reuse: bool = True
    multi_buffer: bool = True
    divide: bool = True
    upstream: bool = False
    without: tuple[str, ...] = ()

    def missing_room(self, module: ModuleOp) -> str | None:
        """Runs the rest of the pipeline, up to memory planning, on a module; returns why it fails.

        Args:
            module: the module as it would be after this pass. It is changed by the later passes, so it should be a copy.

        Returns:
            The message of the first error, which usually names the memory that has no room; None if no pass fails.
        """
        return self.try_plan(module).lack

    def try_plan(self, module: ModuleOp) -> PlanTrial:
        """Runs the rest of the pipeline, up to memory planning, on a module; returns what became of its buffers.

        Args:
            module: the module as it would be after this pass. It is changed by the later passes, so it should be a copy.
        """
        given = {field.name: getattr(self, field.name) for field in fields(Options) if field.name not in _LEFT_OUT}
        options = Options(chip=chips.chip(self.chip), **given)
        context, rows = make_context(), kernel_rows()
        names = [row.name for row in rows]
        for row in rows[names.index(self.name) + 1:names.index("plan-memory") + 1]:
            try:
                row.create_pass(options, quiet=True).apply(context, module)
            except TileError as error:
                return PlanTrial(error)
        refused = [remark for remark in module_remarks(module) if remark.maker == "plan-memory" and remark.kind == REFUSED]
        lost = ((remark.facts.label, remark.facts.spaces[0]) for remark in refused if isinstance(remark.facts, Scoped))
        shared = ((label, remark.facts.space) for remark in refused if isinstance(remark.facts, Held) and remark.facts.shared
                  for label in remark.facts.labels)
        return PlanTrial(None, frozenset(lost), frozenset(shared))
