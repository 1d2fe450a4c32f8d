"""Modules are made invalid after each pass: verifying the changed ops finds the errors that xDSL's verifier finds in all ops.

``TILELANG_RANDOM_VERIFIED=400`` sets the number of changes of each module.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr, f32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import hacc
from tilelang_npu.errors import InternalError
from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.infra.incremental_verifier import IncrementalVerifier, _ModuleWalk
from transforms.pass_kernels import CALLS

TIMES = int(os.environ.get("TILELANG_RANDOM_VERIFIED", "10"))
STAGES = ("tile", "infer-scopes", "hivm-auto", "split-cores", "hivm")


@cache
def stages(name: str) -> dict[str, ModuleOp]:
    """Yields a kernel after each pass."""
    lowering = CALLS[name][0]()._lowering
    seen = {}
    pipeline.lower(lowering.traced.module.clone(), lowering.options, lambda stage, module: seen.update({stage: module.clone()}))
    return seen


class Spoiler:
    """Draws one op of a module, and does something to it that a wrong pass could have done."""

    def __init__(self, module: ModuleOp, rng: random.Random) -> None:
        self.module, self.rng = module, rng
        self.ops = list(module.walk())
        self.op = rng.choice(self.ops)
        self.values: list[SSAValue] = [value for op in self.ops for value in (
            *op.results, *(argument for region in op.regions for block in region.blocks for argument in block.args))]
        self.blocks = [block for op in self.ops for region in op.regions for block in region.blocks]

    def attribute(self) -> Attribute:
        """Returns a random attribute, preferably one of the module."""
        found = [value for op in self.ops for value in (*op.properties.values(), *op.attributes.values())]
        return self.rng.choice([*found, UnitAttr(), StringAttr("x"), IntegerAttr(3, IndexType())])

    def drop_property(self) -> None:
        self.op.properties.pop(self.rng.choice([*self.op.properties, ""]), None)

    def drop_attribute(self) -> None:
        self.op.attributes.pop(self.rng.choice([*self.op.attributes, ""]), None)

    def put_property(self) -> None:
        self.op.properties[self.rng.choice([*self.op.properties, "x"])] = self.attribute()

    def put_attribute(self) -> None:
        names = [name for op in self.ops for name in op.attributes]
        self.op.attributes[self.rng.choice([*names, "x"])] = self.attribute()

    def other_operand(self) -> None:
        self.op.operands[self.rng.randrange(len(self.op.operands))] = self.rng.choice(self.values)

    def fewer_operands(self) -> None:
        self.op.operands = list(self.op.operands)[:-1]

    def more_operands(self) -> None:
        self.op.operands = [*self.op.operands, self.rng.choice(self.values)]

    def turned_operands(self) -> None:
        self.op.operands = list(self.op.operands)[::-1]

    def other_type(self) -> None:
        value = self.rng.choice(self.values)
        Rewriter.replace_value_with_new_type(value, self.rng.choice([f32, self.rng.choice(self.values).type]))

    def type_in_place(self) -> None:
        value = self.rng.choice(self.values)
        value._type = self.rng.choice([f32, self.rng.choice(self.values).type])

    def detached(self) -> None:
        self.op.detach()

    def erased(self) -> None:
        self.op.detach()
        self.op.erase(safe_erase=False)

    def doubled(self) -> None:
        assert self.op.parent is not None
        self.op.parent.insert_op_after(self.op.clone(), self.op)

    def moved(self) -> None:
        block = self.rng.choice([block for block in self.blocks if not self.op.is_ancestor(block)])
        self.op.detach()
        first = block.first_op
        if first is None or self.rng.random() < 0.5:
            block.add_op(self.op)
        else:
            block.insert_op_before(self.op, first)

    def says_another_block(self) -> None:
        self.op.parent = self.rng.choice([None, *self.blocks])

    def emptied(self) -> None:
        block = self.rng.choice(self.blocks)
        for op in reversed(list(block.ops)):
            op.detach()

    def argument_more(self) -> None:
        self.rng.choice(self.blocks).insert_arg(f32, 0)

    def argument_less(self) -> None:
        argument = self.rng.choice([value for value in self.values if isinstance(value, BlockArgument)])
        argument.block.erase_arg(argument, safe_erase=False)

    def block_more(self) -> None:
        region = self.rng.choice(self.op.regions)
        region.add_block(Block())

    def region_less(self) -> None:
        self.op.detach_region(0)

    def region_of_another(self) -> None:
        one, other = self.rng.sample([op for op in self.ops if op.regions and not op.is_ancestor(self.op)], 2)
        one.add_region(other.detach_region(0))

    def other_parent(self) -> None:
        """Replaces an op with regions by another op with the same regions."""
        other = self.rng.choice([op for op in self.ops if op.regions and op is not self.op])
        made = type(other).create(
            operands=list(self.op.operands), result_types=list(self.op.result_types), properties=self.op.properties,
            attributes=self.op.attributes, regions=[self.op.detach_region(region) for region in list(self.op.regions)])
        Rewriter.replace_op(self.op, made)

    def other_constant(self) -> None:
        constant = self.rng.choice([op for op in self.ops if isinstance(op, arith.ConstantOp)])
        constant.properties["value"] = IntegerAttr(self.rng.choice([-1, 0, 1, 10 ** 6]), IndexType())

    def other_name(self) -> None:
        function = self.rng.choice([op for op in self.ops if isinstance(op, func.FuncOp)])
        function.properties["sym_name"] = StringAttr(self.rng.choice(["x", *(
            op.sym_name.data for op in self.ops if isinstance(op, func.FuncOp))]))

    def other_chip(self) -> None:
        self.module.attributes["hacc.target"] = hacc.TargetAttr(self.rng.choice(["Ascend950PR_9589", "Ascend910B1"]))


WAYS = [name for name, member in vars(Spoiler).items() if not name.startswith("_") and name != "attribute"]


def verdict(check: Callable[[], None]) -> str:
    """Returns the message of a verifier, or of any exception in it; empty if the module is valid."""
    try:
        check()
    except Exception as error:  # noqa: BLE001  # a verifier may trip over anything that is broken
        return f"{type(error).__name__}: {error}"
    return ""


def all_asked(module: ModuleOp) -> str:
    """Returns the message of xDSL's verifier without a cache for similar ops."""
    definitions = [kind.get_irdl_definition() for kind in {type(op) for op in module.walk()} if issubclass(kind, IRDLOperation)]
    held = [vars(definition).pop("verify", None) for definition in definitions]
    try:
        return verdict(module.verify)
    finally:
        for definition, verify in zip(definitions, held, strict=True):
            if verify is not None:
                vars(definition)["verify"] = verify


@pytest.mark.parametrize("name", CALLS)
def test_what_is_spoiled_is_found_as_if_all_were_asked(name: str) -> None:
    found: Counter[bool] = Counter()
    for stage in STAGES:
        for seed in range(TIMES):
            rng = random.Random(f"{name} {stage} {seed}")
            module = stages(name)[stage].clone()
            verified = IncrementalVerifier(module)
            verified.verify()
            way = WAYS[seed % len(WAYS)] if seed < len(WAYS) else rng.choice(WAYS)
            try:
                getattr(Spoiler(module, rng), way)()
            except (ValueError, IndexError, AssertionError, TypeError):  # the change is impossible for this op
                continue
            message, all_of_it = verdict(verified.verify), all_asked(module)
            assert message == all_of_it, f"{way}, seed {seed} of {stage}"
            found[bool(message)] += 1
    assert found[True] > 10
    assert found[False] > 2


class Spoils(ModulePass):
    """A pass with an additional invalid change."""

    def __init__(self, made: ModulePass, seed: int) -> None:
        object.__setattr__(self, "name", made.name)
        object.__setattr__(self, "made", made)
        object.__setattr__(self, "seed", seed)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        made: Any = vars(self)["made"]
        made.apply(ctx, op)
        for draw in range(100):
            spoil, tried = partial(self.spoil, draw), op.clone()
            if not verdict(partial(spoil, tried)) and verdict(tried.verify):
                spoil(op)
                return

    def spoil(self, draw: int, module: ModuleOp) -> None:
        rng = random.Random(f"{vars(self)['seed']} {draw}")
        getattr(Spoiler(module, rng), rng.choice(WAYS))()


@pytest.mark.parametrize("row", range(len(pipeline.ROWS)), ids=[row.name for row in pipeline.ROWS])
def test_an_invalid_change_of_a_pass_is_found_after_that_pass(row: int) -> None:
    lowering = CALLS["both_cores"][0]()._lowering
    named = pipeline.kernel_passes(lowering.options)
    spoiled = [(name, Spoils(made, row) if place == row else made) for place, (name, made) in enumerate(named)]
    with pytest.raises(InternalError, match=f"after {named[row][0]} the module does not verify"):
        pipeline._run(lowering.traced.module.clone(), spoiled, None)


def test_an_op_that_says_the_block_it_was_in_is_found() -> None:
    module = stages("rows")["hivm"].clone()
    verified = IncrementalVerifier(module)
    verified.verify()
    loop = next(op for op in module.walk() if op.name == "scf.for")
    op, old = loop.regions[0].block.first_op, loop.parent
    assert op is not None and old is not None
    inner = op.parent
    op.detach()
    old.insert_op_before(op, loop)
    op.parent = inner
    assert verdict(verified.verify) == all_asked(module) != ""


def test_only_what_changed_is_asked() -> None:
    module = stages("both_cores")["hivm"].clone()
    verified = IncrementalVerifier(module)
    verified.verify()
    assert _ModuleWalk(verified._states, module).ops_to_verify() == []
    op = next(op for op in module.walk() if op.name == "hivm.hir.load")
    op.attributes["x"] = UnitAttr()
    around: list[Operation] = []
    parent = op.parent_op()
    while parent is not None:
        around.append(parent)
        parent = parent.parent_op()
    naming = [each for each in module.walk() if any(isinstance(value, SymbolRefAttr) for value in (
        *each.properties.values(), *each.attributes.values()))]
    assert set(_ModuleWalk(verified._states, module).ops_to_verify()) == {op, *around, *naming}
    verified.verify()
    assert _ModuleWalk(verified._states, module).ops_to_verify() == []


def test_a_new_op_with_the_id_of_a_removed_one_is_verified() -> None:
    """Removed ops are not kept alive, so that a new op may have the same id."""
    module = stages("rows")["hivm"].clone()
    verified = IncrementalVerifier(module)
    verified.verify()
    gone = [op for op in module.walk() if not op.regions and not op.results and op.next_op is not None]
    for op in gone:
        op.detach()
        op.erase()
    verified.verify()
    assert {id(op) for op in module.walk()} == set(verified._states)
    assert all(id(seen.op) == key for key, seen in verified._states.items())
