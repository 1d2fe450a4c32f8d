"""The memory effects of ops are declared at their definition; this package and xDSL read them there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import MemRefType, f32, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_operand_def, traits_def
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure, get_effects
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce

import tilelang_npu as tilelang
from samples import product
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hfusion import HFusion
from tilelang_npu.dialects.ir.constants import is_known_true
from tilelang_npu.dialects.ir.declaration import DialectOp, operation
from tilelang_npu.dialects.ir.destination_style import MEMREF
from tilelang_npu.dialects.ir.effects import Effect, EffectsOp, accesses, check_effects, effects_of, op_with_effects
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.dialects.tile import Tile
from tilelang_npu.transforms.hivm.sync.items import build_items

OPS = [op for dialect in (Tile, hivm.Hivm, HFusion) for op in dialect.operations]
UB = hivm.address_space("ub")
READ, WRITE = MemoryEffectKind.READ, MemoryEffectKind.WRITE


def buffers(count: int, space: Attribute = UB) -> list[SSAValue]:
    """Some buffers."""
    return list(test.TestOp(result_types=[MemRefType(f32, [64], memory_space=space)] * count).results)


@pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
def test_every_op_declares_its_effects(op: type[Operation]) -> None:
    assert issubclass(op, EffectsOp)
    check_effects(op, op.get_irdl_definition())
    assert any(isinstance(trait, MemoryEffect) for trait in op.traits)


def _silent() -> None:
    @operation(reads=("source",))
    class Silent(DialectOp):
        name = "hivm.hir.silent"
        source = operand_def(MEMREF)
        target = operand_def(MEMREF)


def _misspelled() -> None:
    @operation(reads=("source",), writes=("traget",))
    class Misspelled(DialectOp):
        name = "hivm.hir.misspelled"
        source = operand_def(MEMREF)
        target = operand_def(MEMREF)


def _idle() -> None:
    @op_with_effects()
    class Idle(EffectsOp):
        name = "tile.idle"
        number = operand_def(i1)


def _unheard_of() -> None:
    @op_with_effects(raeds=("source",))
    class UnheardOf(EffectsOp):
        name = "tile.unheard_of"
        source = operand_def(MEMREF)


@pytest.mark.parametrize(("define", "message"), [
    (_silent, "hivm.hir.silent does not declare its effect on the operand target"),
    (_misspelled, "hivm.hir.misspelled declares an effect on traget, but has no such operand"),
    (_idle, "tile.idle declares no effect"),
    (_unheard_of, "tile.unheard_of: 'raeds' is not a kind of effect"),
])
def test_an_op_without_declared_effects_is_refused(define: Callable[[], None], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        define()


@operation(pipes=("V",), core="AIV", reads=("source",), writes=("target",))
class NewOp(DialectOp):
    """An additional op, whose effects are known only from its definition."""

    name = "hivm.hir.new"
    source = operand_def(MEMREF)
    target = operand_def(MEMREF)
    temp_buffer = opt_operand_def(MEMREF)
    ADDS: ClassVar[bool] = False

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the op adds to its destination."""
        return self.ADDS

    def __init__(self, *operands: SSAValue) -> None:
        IRDLOperation.__init__(self, operands=[*operands, None][:3])


@operation()
class NewPureOp(DialectOp):
    """Another one, with no effect."""

    name = "hivm.hir.new_pure"
    source = operand_def(MEMREF)
    traits = traits_def(Pure())


def test_a_new_op_is_known_to_all_by_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target, scratch = buffers(3)
    op = NewOp(source, target, scratch)
    assert effects_of(op) == (
        Effect(op, 0, "source", reads=True, writes=False, pipe="V"),
        Effect(op, 1, "target", reads=False, writes=True, pipe="V"),
        Effect(op, 2, "temp_buffer", reads=False, writes=True, pipe="V", scratch=True))
    assert get_effects(op) == {EffectInstance(READ, source), EffectInstance(WRITE, target), EffectInstance(WRITE, scratch)}
    assert accesses(op) == effects_of(op)
    monkeypatch.setattr(NewOp, "ADDS", True)
    assert effects_of(op)[1].reads
    assert get_effects(op) == {EffectInstance(READ, source), EffectInstance(READ, target), EffectInstance(WRITE, target),
                               EffectInstance(WRITE, scratch)}
    assert effects_of(NewPureOp(operands=[source])) == ()
    assert get_effects(NewPureOp(operands=[source])) == set()


def test_the_waits_are_asked_of_the_definition() -> None:
    from xdsl.ir import Block

    source, target, scratch = buffers(3)
    block = Block([source.owner, NewOp(source, target, scratch)])
    (item,) = build_items(block).items
    assert sorted((access.pipe, access.writes) for access in item.accesses) == [("V", False), ("V", True), ("V", True)]


def test_scalar_storage_has_no_pipe() -> None:
    from xdsl.dialects import memref

    (there,) = buffers(1)
    own = memref.AllocaOp.get(f32, None, [1]).memref
    assert [access.pipe for access in accesses(memref.LoadOp.get(there, []))] == ["S"]
    load = memref.LoadOp.get(own, [])
    assert accesses(load) == ()
    assert [(effect.reads, effect.writes) for effect in effects_of(load)] == [(True, False)]


def _effective(module: Any) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("hivm.") and not op.has_trait(Pure)]


def test_xdsls_passes_leave_what_ops_do() -> None:
    module = tilelang.compile(product())._lowering.final
    left = module.clone()
    region_dce(left.body)
    assert str(left) == str(module)
    cse(left)
    assert _effective(left) == _effective(module)
    assert {"hivm.hir.set_flag", "hivm.hir.wait_flag", "hivm.hir.mmadL1", "hivm.hir.fixpipe"} <= set(_effective(left))


@pytest.mark.parametrize(("end", "asks", "first"), [(1, "eq, %k, %c0", True), (2, "eq, %k, %c0", False),
                                                    (1, "ne, %k, %c0", False), (1, "eq, %k, %c1", False)])
def test_a_loop_that_runs_once_begins_its_sum_anew(end: int, asks: str, first: bool) -> None:
    """In a loop that runs once, the condition "is the first iteration" is a constant for the analysis of effects."""
    module = parse_module(f"""func.func @k() {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant {end} : index
  scf.for %k = %c0 to %end step %c1 {{
    %first = arith.cmpi {asks} : index
  }}
  return
}}""")
    (asked,) = (op for op in module.walk() if op.name == "arith.cmpi")
    assert is_known_true(asked.results[0]) is first
