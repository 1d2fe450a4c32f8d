"""The stages of a pipelined loop: even stages of one core, odd ones of the other, few bytes from stage to stage."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.transforms.tile.assign_cores import AssignCores
from tilelang_npu.transforms.tile.overlap_iterations.stages import StagedBody, cut_into_stages

MEMORIES = {"l": "cbuf", "c": "cc", "w": "gm", "v": "ub"}
"""By the first letter of a buffer's name: fractals of operands, accumulators, workspaces, tiles of the Vector core."""
TO_AND_FRO = ["copy T l1", "gemm lq l1 c1", "copy c1 w1",
              "copy w1 v1", "exp v1 v1", "copy v1 w2",
              "copy w2 l2", "gemm l2 lq c2", "copy c2 w3"]
"""The statements of stage 0 (a line with a load, a product and a store), stage 1 and stage 2."""


def kind(name: str) -> str:
    return f"memref<16x16xf32, #hivm.address_space<{MEMORIES.get(name[0], 'gm')}>>"


def staged(statements: list[str], outside: tuple[str, ...] = ("lq",)) -> StagedBody:
    """Returns the body of a loop with statements such as ``add v1 v2 v3``, whose last operand is written.

    Buffers are allocated in the loop, except those of ``outside``; T and O are tensors of the kernel.
    """
    def written(statement: str) -> str:
        word, *names = statement.split()
        *ins, out = names
        types = [kind(name) for name in names]
        if word == "copy":
            return f"tile.copy %{ins[0]} to %{out} : {types[0]} to {types[1]}"
        if word == "gemm":
            return f"tile.gemm %{ins[0]}, %{ins[1]} into %{out} init %yes : {types[0]}, {types[1]} into {types[2]}"
        operands = ", ".join(f"%{name}" for name in ins)
        return f'tile.elementwise "{word}" ins({operands} : {", ".join(types[:-1])}) outs(%{out} : {types[-1]})'

    names = sorted({name for statement in statements for name in statement.split()[1:]} - {"T", "O"})
    allocated = {name: f'%{name} = tile.alloc "{name}" : {kind(name)}' for name in names}
    before, within = ("\n".join(allocated[name] for name in names if (name in outside) == there) for there in (True, False))
    body = "\n".join(map(written, statements))
    module = parse_module(f"""func.func @k(%T: {kind("T")}, %O: {kind("O")}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %eight = arith.constant 8 : index
      %yes = arith.constant true
      tile.launch(%one) sub_blocks 1 : i64 {{
      ^bb0(%block: index):
        {before}
        scf.for %i = %zero to %eight step %one {{
          {within}
          {body}
        }}
      }}
      return
    }}""")
    AssignCores().apply(Context(), module)
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    found = cut_into_stages(loop, Ranges())
    assert isinstance(found, StagedBody)
    return found


def test_a_value_stays_where_it_is_if_another_of_its_size_had_to_pass_the_stages() -> None:
    """exp computes v3, which stage 3 needs, from v1: one of the two passes two stages."""
    body = staged([*TO_AND_FRO[:6], "exp v1 v3", *TO_AND_FRO[6:], "copy w3 v2", "add v2 v3 v2", "copy v2 O"])
    assert [each.stage for each in body.statements] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_the_latest_stages_leave_nothing_that_could_be_later() -> None:
    """v4 is added to a sum, which can be in stage 5; v4 can be there too, once the sum is."""
    body = staged([*TO_AND_FRO[:5], "add vsum v1 vsum", "exp v1 v4", "add vsum v4 vsum", TO_AND_FRO[5], *TO_AND_FRO[6:],
                   "copy w3 v2", "add vsum v2 vsum", "copy v2 w4",
                   "copy w4 l3", "gemm l3 lq c3", "copy c3 w5", "copy w5 v5", "exp v5 v5", "copy v5 O"], ("lq", "vsum"))
    body._assign_latest_stages()
    for unit in body._units():
        assert {body.statements[index].stage for index in unit} == {body._legal_stages(unit)[1]}
