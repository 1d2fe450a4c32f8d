"""The buffer of an access: for given HIVM one for each address, one for all slots, and the planner's buffers."""

from __future__ import annotations

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator.run.program import Program

UB = "memref<64xf32, #hivm.address_space<ub>>"
COPY = f"hivm.hir.vexp ins(%{{}} : {UB}) outs(%{{}} : {UB})"


def owners(body: str) -> list[tuple[int | None, bool]]:
    """The buffers of the accesses of a kernel with four addresses, in order, and whether the planner has placed them."""
    casts = "\n".join(f"%at{number} = arith.constant {256 * number} : i64\n%{name} = hivm.hir.pointer_cast(%at{number}) : {UB}"
                      for number, name in enumerate("abcd"))
    program = Program(parse_module(f"""func.func @k(%even: i1) attributes {{hacc.entry,
        hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      {casts}
      {body}
      return
    }}"""))
    return [(access.owner, access.planned) for record in program.functions[0].records for access in record.accesses]


@pytest.mark.parametrize(("body", "buffers"), [
    (f"{COPY.format('a', 'b')}\n{COPY.format('b', 'c')}", "abbc"),
    (f"%x = arith.select %even, %a, %b : {UB}\n{COPY.format('x', 'c')}\n{COPY.format('a', 'd')}\n{COPY.format('b', 'd')}",
     "acadad"),
    # known later than the first accesses
    (f"{COPY.format('a', 'c')}\n{COPY.format('b', 'c')}\n%x = arith.select %even, %b, %a : {UB}\n{COPY.format('x', 'd')}",
     "acacad"),
    (f"%x, %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %a, %q = %b) -> ({UB}, {UB}) {{\n{COPY.format('p', 'c')}\n"
     f"scf.yield %q, %p : {UB}, {UB}\n}}\n{COPY.format('a', 'd')}\n{COPY.format('b', 'd')}", "acadad"),
    (f"%x = scf.if %even -> ({UB}) {{\nscf.yield %a : {UB}\n}} else {{\nscf.yield %b : {UB}\n}}\n{COPY.format('x', 'c')}\n"
     f"{COPY.format('b', 'd')}", "acad"),
], ids=["each address", "a choice", "a choice after the accesses", "a loop hands on", "a branch hands on"])
def test_addresses_of_given_text(body: str, buffers: str) -> None:
    found = owners(body)
    assert not any(planned for _, planned in found)
    names = [name for name, _ in dict.fromkeys(zip(buffers, [owner for owner, _ in found], strict=True))]
    assert len(names) == len(set(names)) == len({owner for owner, _ in found})


@pytest.mark.parametrize("pinned", [True, False])
def test_the_planners_numbers(pinned: bool) -> None:
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, __):
            x = T.alloc_ub((8, 64), "float32")
            y = T.alloc_ub((8, 64), "float32")
            if pinned:
                T.annotate_address({x: 0, y: 8192})
            for i in T.Pipelined(8, num_stages=1 if pinned else 2):
                T.copy(X[i * 8, 0], x)
                T.vexp(x, y)
                T.copy(y, Y[i * 8, 0])

    program = tilelang.compile(main, target="npuir").program
    accesses = [access for record in program.functions[0].records for access in record.accesses if access.memory != "gm"]
    assert {access.planned for access in accesses} == {not pinned}
    assert {access.label: access.owner for access in accesses}.keys() == {"x", "y"}
    assert len({(access.label, access.owner) for access in accesses}) == 2
