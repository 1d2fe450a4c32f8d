"""Back-pressure flags between the cores are inserted if and only if a flag would count too many sets."""

from __future__ import annotations

from collections import Counter

import pytest
from xdsl.dialects import scf

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import make_context, parse_module
from tilelang_npu.target import DEFAULT, chip
from tilelang_npu.transforms.hivm.cross_sync import CrossSync
from tilelang_npu.transforms.tile.assign_cores import AssignCores

LIMIT = chip(DEFAULT).sync.flag_limit
SLOTS = 2
HEAD = """func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>},
    %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>},
    %p: memref<4096x16xf32, #hivm.address_space<gm>>, %went: memref<?xi1, #hivm.address_space<gm>>)
    attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %trips = arith.constant TRIPS : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %trips step %c1 {
"""
HANDED = """hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
      outs(%w : TYPE)
    hivm.hir.load ins(%w : TYPE) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
"""
ONE_WAY = HEAD + """
    %row = arith.muli %i, %c16 : index
    %w = memref.subview %p[%row, 0] [16, 16] [1, 1] : memref<4096x16xf32, #hivm.address_space<gm>> to TYPE
    """ + HANDED + "}\n return\n}"
IN_A_BRANCH = HEAD + f"""
    %w = memref_ext.alloc_workspace() : TYPE
    annotation.mark %w {{hivm.multi_buffer = {SLOTS} : i32}} : TYPE
    %go = memref.load %went[%i] : memref<?xi1, #hivm.address_space<gm>>
    scf.if %go {{
    """ + HANDED + "}\n}\n return\n}"
IN_A_LOOP_IN_A_BRANCH = HEAD + f"""
    %all = memref.load %went[%c0] : memref<?xi1, #hivm.address_space<gm>>
    scf.if %all {{
      %c5 = arith.constant 5 : index
      scf.for %j = %c0 to %c5 step %c1 {{
        %w = memref_ext.alloc_workspace() : TYPE
        annotation.mark %w {{hivm.multi_buffer = {SLOTS} : i32}} : TYPE
        %go = memref.load %went[%j] : memref<?xi1, #hivm.address_space<gm>>
        scf.if %go {{
        """ + HANDED + "}\n}\n}\n}\n return\n}"
ROWS = "memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>"
WHOLE = "memref<16x16xf32, #hivm.address_space<gm>>"


def flags(text: str, trips: int, kind: str) -> tuple[Counter[str], int]:
    """By core how many flags are set in the text; and how many branches there are."""
    module = parse_module(text.replace("TRIPS", str(trips)).replace("TYPE", kind))
    for step in (AssignCores(), CrossSync()):
        step.apply(make_context(), module)
    module.verify()
    sets = Counter(op.tcore_type.data for op in module.walk() if isinstance(op, hivm.SyncBlockSetOp))
    return sets, sum(isinstance(op, scf.IfOp) for op in module.walk())


@pytest.mark.parametrize("trips", [2, LIMIT - 1, LIMIT, LIMIT + 1, 4 * LIMIT])
def test_what_goes_one_way_is_held_back_where_it_is_more_than_a_flag_counts(trips: int) -> None:
    sets, _ = flags(ONE_WAY, trips, ROWS)
    assert sets["CUBE"] == 1
    assert (sets["VECTOR"] > 0) == (trips > LIMIT)


@pytest.mark.parametrize("trips", [2, LIMIT - SLOTS, LIMIT - SLOTS + 1, LIMIT, 4 * LIMIT])
def test_a_branch_that_is_not_taken_exchanges_a_flag_where_that_could_be_too_often(trips: int) -> None:
    """Vector sets a flag for each slot before the loop and one in each iteration, whether or not the branch is taken."""
    sets, branches = flags(IN_A_BRANCH, trips, WHOLE)
    more = trips + SLOTS > LIMIT
    assert branches == (2 if more else 1)
    assert sets["CUBE"] == (2 if more else 1)


@pytest.mark.parametrize("trips", [1, 4 * LIMIT])
def test_a_branch_in_which_a_core_waits_has_no_arm_for_where_it_is_not_taken(trips: int) -> None:
    """It sets no flag there."""
    _, branches = flags(IN_A_LOOP_IN_A_BRANCH, trips, WHOLE)
    assert branches == (2 if trips == 1 else 3)
