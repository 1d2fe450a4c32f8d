"""The ops and attributes that structure a kernel in the tile dialect: the launch, cores, parallel loops, loop attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    FusedLoc,
    IndexType,
    IntegerAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList, split_dynamic_index_list, verify_dynamic_index_list
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, NoTerminator, Pure, RecursiveMemoryEffect

from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.dialects.ir.effects import EffectsOp, op_with_effects
from tilelang_npu.dialects.ir.index_lists import mixed_values

__all__ = [
    "CROSS_INTERVAL", "DIALECT", "NUM_STAGES", "ORDER", "SCHEDULE", "SCRATCH", "STAGE", "UNROLL", "WORKSPACE", "ByCoreOp",
    "CoreScope", "LaunchOp", "OnCoreOp", "ParallelOp", "YieldOp", "stages_of", "statement_name", "statement_of",
    "strip_statement", "vector_cores_of",
]


@op_with_effects()
class LaunchOp(EffectsOp):
    """Executes the kernel body once per block of the grid; the body has one ``index`` argument per grid axis.

    ``sub_blocks`` is the number of Vector cores per block that execute the body. With ``explicit_sub_block`` the author uses
    the index of the Vector core (``vid``), which is then the last argument of the body. With ``spread`` the compiler divides
    the work on Vector cores between the Vector cores of the block.

    ``panel`` changes the order in which the blocks traverse the first two axes of the grid, so that consecutive blocks load
    the same data. The grid is divided into panels of ``panel`` rows (the second axis). Each panel is traversed column by
    column, and every other panel in reverse order. With ``upright`` the panels consist of columns instead of rows.
    """

    name = "tile.launch"
    grid = var_operand_def(IndexType)
    sub_blocks = prop_def(IntegerAttr)
    explicit_sub_block = opt_prop_def(UnitAttr)
    spread = opt_prop_def(UnitAttr)
    panel = opt_prop_def(IntegerAttr)
    upright = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())
    assembly_format = (
        "`(` $grid `)` `sub_blocks` $sub_blocks (`explicit` $explicit_sub_block^)? (`spread` $spread^)? (`panel` $panel^)?"
        " (`upright` $upright^)?"
        " attr-dict-with-keyword $body"
    )

    def __init__(self, grid: Sequence[SSAValue], sub_blocks: int, explicit_sub_block: bool, body: Region | None = None, *,
                 spread: bool = False):
        count = len(grid) + explicit_sub_block
        super().__init__(
            operands=[grid],
            properties={
                "sub_blocks": IntegerAttr(sub_blocks, i64),
                "explicit_sub_block": UnitAttr() if explicit_sub_block else None,
                "spread": UnitAttr() if spread else None,
            },
            regions=[body or Region(Block(arg_types=[IndexType()] * count))],
        )

    def verify_(self) -> None:
        expected = len(self.grid) + (self.explicit_sub_block is not None)
        if len(self.body.block.args) != expected:
            fail(f"the body has {len(self.body.block.args)} arguments, but the grid requires {expected}")
        if self.sub_blocks.value.data < 1:
            fail(f"sub_blocks is {self.sub_blocks.value.data}; it must be at least 1")
        if self.panel is not None and self.panel.value.data <= 0:
            fail(f"panel is {self.panel.value.data}; it must be at least 1")
        if self.upright is not None and self.panel is None:
            fail("upright is set without panel: it has a meaning only with panel")


def vector_cores_of(op: Operation) -> int:
    """Returns the number of Vector cores per block of the launch that encloses an op; 2 if no launch does."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, LaunchOp):
        parent = parent.parent_op()
    return 2 if parent is None else parent.sub_blocks.value.data


CoreScope = Literal["cube", "vector"]
"""The core of a ``T.Scope``."""


@op_with_effects()
class OnCoreOp(EffectsOp):
    """Represents ``T.Scope``: only the core that ``core`` names, ``cube`` or ``vector``, executes the body."""

    name = "tile.on_core"
    core = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())
    assembly_format = "$core attr-dict-with-keyword $body"

    def __init__(self, core: CoreScope, body: Region | None = None):
        super().__init__(properties={"core": StringAttr(core)}, regions=[body or Region(Block())])

    def verify_(self) -> None:
        if self.core.data not in ("cube", "vector"):
            fail(f"core is {self.core.data!r}; it must be 'cube' or 'vector'")


@op_with_effects()
class ByCoreOp(EffectsOp):
    """Yields the operand ``cube`` on the Cube core and the operand ``vector`` on a Vector core."""

    name = "tile.by_core"
    KIND: ClassVar = VarConstraint("KIND", AnyAttr())
    cube = operand_def(KIND)
    vector = operand_def(KIND)
    result = result_def(KIND)
    traits = traits_def(Pure())
    assembly_format = "`cube` $cube `vector` $vector attr-dict `:` type($result)"

    def __init__(self, cube: SSAValue, vector: SSAValue):
        super().__init__(operands=[cube, vector], result_types=[cube.type])


@op_with_effects()
class ParallelOp(EffectsOp):
    """Represents ``T.Parallel``: executes each statement of the body for all points of the iteration space, then the next.

    The body has one index argument per axis of the iteration space. It may contain scalar operations, ``memref.load``,
    ``memref.store``, ``scf.if`` and ``tile.copy``.
    """

    name = "tile.parallel"
    extents = var_operand_def(IndexType)
    static_extents = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())
    assembly_format = "custom<DynamicIndexList>($extents, $static_extents) attr-dict-with-keyword $body"
    custom_directives = (DynamicIndexList,)

    def __init__(self, extents: Sequence[SSAValue | int], body: Region | None = None):
        static, dynamic = split_dynamic_index_list(extents, DYNAMIC_INDEX)
        super().__init__(
            operands=[dynamic],
            properties={"static_extents": DenseArrayBase.from_list(i64, static)},
            regions=[body or Region(Block(arg_types=[IndexType()] * len(extents)))],
        )

    def mixed_extents(self) -> list[SSAValue | int]:
        """Returns the extent of each axis: an int if the extent is a constant, else an SSA value."""
        return mixed_values(self.static_extents, self.extents)

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.static_extents.get_values()):
            fail(f"the body has {len(self.body.block.args)} arguments, but must have one per extent")
        verify_dynamic_index_list(self.static_extents.get_values(), self.extents, DYNAMIC_INDEX, " in the extents")


@op_with_effects()
class YieldOp(EffectsOp):
    """Terminates the body of a tile op; the terminator is optional."""

    name = "tile.yield"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


NUM_STAGES = "tile.num_stages"  # attribute of scf.for: the num_stages of T.Pipelined
SCHEDULE = "tile.schedule"  # attribute of scf.for: the number of the loop in the locations of the ops of its statements
STAGE = "tile.stage"  # attribute of scf.for with SCHEDULE: by statement, the number of iterations by which it is delayed
ORDER = "tile.order"  # attribute of scf.for with SCHEDULE: by statement, its position in the new order
CROSS_INTERVAL = "tile.cross_interval"  # attribute of scf.for: the cross_interval of T.Pipelined, iterations per flag
SCRATCH = "tile.scratch"  # argument attribute: a tensor that is allocated for the kernel, uninitialised
WORKSPACE = "tile.workspace"  # argument attribute, with SCRATCH: only this kernel accesses the tensor
UNROLL = "tile.unroll"  # attribute of scf.for: the loop is a T.unroll
DIALECT = "tile.dialect"  # attribute of the function: the dialect of the language, "npuir" or "ascendc"


def statement_name(loop: int, statement: int) -> StringAttr:
    """Returns the location name that marks an op as part of a statement of a loop with the attribute ``SCHEDULE``.

    Args:
        loop: the number in the loop's ``SCHEDULE`` attribute.
        statement: the number of the statement in the loop body.
    """
    return StringAttr(f"tile.statement {loop} {statement}")


def statement_of(op: Operation, loop: Operation) -> int | None:
    """Returns the number of the statement of ``loop`` that an op belongs to, as the op's location states it.

    Returns None if the loop has no ``SCHEDULE`` attribute, or the op's location names no statement of the loop.
    """
    number = loop.attributes.get(SCHEDULE)
    where: Attribute = op.location
    while isinstance(where, (FusedLoc, NameLoc)) and isinstance(number, IntegerAttr):
        if isinstance(where, FusedLoc):  # a location with remarks
            assert isinstance(where.locations, ArrayAttr)
            where = where.locations.data[0]
            continue
        word, *numbers = where.desc.data.split()
        if word == "tile.statement" and int(numbers[0]) == number.value.data:
            return int(numbers[1])
        where = where.location
    return None


def strip_statement(where: LocationAttr) -> LocationAttr:
    """Returns the location without the names that :func:`statement_name` added to it."""
    while (isinstance(where, NameLoc) and where.desc.data.startswith("tile.statement ")
           and isinstance(where.location, LocationAttr)):
        where = where.location
    return where


def stages_of(loop: Operation) -> int:
    """Returns the ``num_stages`` that the author set on a loop; 1 if the loop has none."""
    value = loop.attributes.get(NUM_STAGES)
    return value.value.data if isinstance(value, IntegerAttr) else 1
