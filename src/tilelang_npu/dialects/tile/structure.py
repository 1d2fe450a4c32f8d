"""The frame of a kernel in the tile dialect: the launch, cores, parallel loops, and what loops are asked for."""

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


@op_with_effects()
class LaunchOp(EffectsOp):
    """The kernel body, run once per block of the grid: one ``index`` argument per grid axis, then the sub-block if
    asked for.

    With ``spread`` the compiler divides the Vector work between the sub-blocks.

    With ``panel`` blocks go through the first two axes of the grid by panels of so many rows (of the second axis), down a
    panel's columns, every other panel backwards; with ``upright`` panels are of columns. Neighbours then share what they load.

    ``sub_blocks`` is the number of Vector cores that execute the body side by side (1 or 2); with
    ``explicit_sub_block`` the user wrote the sub-block index (``vid``) and it is the last block argument.
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
            fail(f"a panel of {self.panel.value.data} rows")
        if self.upright is not None and self.panel is None:
            fail("upright says how panels lie, and there is no panel")


@op_with_effects()
class OnCoreOp(EffectsOp):
    """``T.Scope``: the body belongs to one core, whatever its operations are. ``core`` is ``cube`` or ``vector``."""

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
    """A number that the cores have from different places: on the Cube core the first operand, on the Vector core the second."""

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
    """``T.Parallel``: the body once for each point of a box, statement by statement over all points; one index per
    axis.

    The body holds scalar operations, ``memref.load`` and ``memref.store``, ``scf.if``, and ``tile.copy``.
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
        """Extents per axis, constants as ints."""
        return mixed_values(self.static_extents, self.extents)

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.static_extents.get_values()):
            fail("one body argument per extent")
        verify_dynamic_index_list(self.static_extents.get_values(), self.extents, DYNAMIC_INDEX, " in the extents")


@op_with_effects()
class YieldOp(EffectsOp):
    """Optional end of a tile region."""

    name = "tile.yield"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


NUM_STAGES = "tile.num_stages"  # attribute of scf.for: the depth that T.Pipelined asked for
SCHEDULE = "tile.schedule"  # attribute of scf.for: the number of the loop in the locations of its statements' ops
STAGE = "tile.stage"  # attribute of scf.for beside SCHEDULE: for each statement how many iterations it is behind
ORDER = "tile.order"  # attribute of scf.for beside SCHEDULE: for each statement its place
CROSS_INTERVAL = "tile.cross_interval"  # attribute of scf.for: iterations that T.Pipelined wanted to share a flag
SCRATCH = "tile.scratch"  # argument attribute: a tensor allocated for the kernel, with nothing in it
WORKSPACE = "tile.workspace"  # argument attribute, beside SCRATCH: nobody sees the tensor but this kernel
UNROLL = "tile.unroll"  # attribute of scf.for: T.unroll
DIALECT = "tile.dialect"  # attribute of the function: "npuir" or "ascendc", whose rules the source follows


def statement_name(loop: int, statement: int) -> StringAttr:
    """What stands in the locations of the ops of a statement of a loop that has a schedule: their numbers."""
    return StringAttr(f"tile.statement {loop} {statement}")


def statement_of(op: Operation, loop: Operation) -> int | None:
    """Which statement of a loop that has a schedule an op is of, by its location; None where it does not say."""
    number = loop.attributes.get(SCHEDULE)
    where: Attribute = op.location
    while isinstance(where, (FusedLoc, NameLoc)) and isinstance(number, IntegerAttr):
        if isinstance(where, FusedLoc):  # remarks are in it
            assert isinstance(where.locations, ArrayAttr)
            where = where.locations.data[0]
            continue
        word, *numbers = where.desc.data.split()
        if word == "tile.statement" and int(numbers[0]) == number.value.data:
            return int(numbers[1])
        where = where.location
    return None


def without_statement(where: LocationAttr) -> LocationAttr:
    """A location that says of no statement any more."""
    while (isinstance(where, NameLoc) and where.desc.data.startswith("tile.statement ")
           and isinstance(where.location, LocationAttr)):
        where = where.location
    return where


def stages_of(loop: Operation) -> int:
    """Pipeline depth that the user asked for at ``loop``; 1 where none was asked for."""
    value = loop.attributes.get(NUM_STAGES)
    return value.value.data if isinstance(value, IntegerAttr) else 1
