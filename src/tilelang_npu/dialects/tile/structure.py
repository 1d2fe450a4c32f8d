"""The structure of a kernel in the tile dialect: the launch, cores, parallel loops, and attributes of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

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
from tilelang_npu.dialects.tile.buffers import mixed_values

__all__ = [
    "CROSS_INTERVAL", "DIALECT", "NUM_STAGES", "ORDER", "SCHEDULE", "SCRATCH", "STAGE", "UNROLL", "WORKSPACE", "ByCoreOp",
    "LaunchOp", "OnCoreOp", "ParallelOp", "YieldOp", "stages_of", "statement_name", "statement_of", "strip_statement",
]


@op_with_effects()
class LaunchOp(EffectsOp):
    """The kernel body, executed once per block of the grid, with one ``index`` argument per grid axis.

    ``sub_blocks`` is the number of Vector cores of a block that execute the body (1 or 2). With ``explicit_sub_block`` the
    author uses the number of the Vector core (``vid``), which is then the last argument. With ``spread`` the compiler divides
    the Vector work between the Vector cores.

    ``panel`` changes the order in which blocks traverse the first two axes of the grid, so that consecutive blocks load the
    same data: the grid is divided into panels of so many rows (the second axis), each panel is traversed column by column, and
    every other panel backwards. With ``upright`` the panels are of columns.
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
            fail(f"the body takes {len(self.body.block.args)} indices, the grid gives {expected}")
        if self.sub_blocks.value.data not in (1, 2):
            fail(f"sub_blocks is {self.sub_blocks.value.data}; a block has 1 or 2 vector cores")
        if self.panel is not None and self.panel.value.data <= 0:
            fail(f"a panel has {self.panel.value.data} rows; it must have at least one")
        if self.upright is not None and self.panel is None:
            fail("upright needs a panel")


@op_with_effects()
class OnCoreOp(EffectsOp):
    """``T.Scope``: one core executes the whole body. ``core`` is ``cube`` or ``vector``."""

    name = "tile.on_core"
    core = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())
    assembly_format = "$core attr-dict-with-keyword $body"

    def __init__(self, core: str, body: Region | None = None):
        super().__init__(properties={"core": StringAttr(core)}, regions=[body or Region(Block())])

    def verify_(self) -> None:
        if self.core.data not in ("cube", "vector"):
            fail(f"core is {self.core.data!r}; it must be 'cube' or 'vector'")


@op_with_effects()
class ByCoreOp(EffectsOp):
    """A number that each core computes in its own way: the Cube core has the first operand, the Vector core the second."""

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
    """``T.Parallel``: executes each statement of the body for all points of a box, before the next statement.

    The body has one index argument per axis. It contains scalar operations, ``memref.load`` and ``memref.store``, ``scf.if``,
    and ``tile.copy``.
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
        """The extents per axis, constants as ints."""
        return mixed_values(self.static_extents, self.extents)

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.static_extents.get_values()):
            fail("one body argument per extent")
        verify_dynamic_index_list(self.static_extents.get_values(), self.extents, DYNAMIC_INDEX, " in the extents")


@op_with_effects()
class YieldOp(EffectsOp):
    """The optional terminator of the body of a tile op."""

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
    """The name in the locations of the ops of a statement of a loop with a schedule."""
    return StringAttr(f"tile.statement {loop} {statement}")


def statement_of(op: Operation, loop: Operation) -> int | None:
    """The number of the statement of a loop with a schedule that an op belongs to, by its location; None if it has none."""
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
    """A location without the name of a statement."""
    while (isinstance(where, NameLoc) and where.desc.data.startswith("tile.statement ")
           and isinstance(where.location, LocationAttr)):
        where = where.location
    return where


def stages_of(loop: Operation) -> int:
    """The ``num_stages`` that the author asked for at a loop; 1 by default."""
    value = loop.attributes.get(NUM_STAGES)
    return value.value.data if isinstance(value, IntegerAttr) else 1
