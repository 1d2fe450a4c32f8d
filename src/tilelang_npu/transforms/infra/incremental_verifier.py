"""Verifies a module after each pass, and only those ops whose verifier can give another result than before the pass.

A pass changes few ops, but xDSL's ``verify`` verifies all of them. By MLIR's convention, and in these dialects, a verifier of
an op reads the op itself, the ops that define its operands, the ops nested in it, the ops that contain it, and the symbols that
it names. So these ops are verified: each op that changed, the users of its results, all ops that contain it, all ops nested in
it, and each op that names a symbol. Discardable attributes are read by the op's own verifier only, except for those of the
module, which name the chip.

``tests/transforms/test_incremental_verifier.py`` makes modules invalid in many ways, and checks that this verifier reports
every error that xDSL's ``verify`` reports.
"""

from __future__ import annotations

from itertools import chain

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilelang_npu.analysis.cores import CORE, states_core
from tilelang_npu.dialects.ir.signatures import cache_verification

__all__ = ["IncrementalVerifier"]

_BlockStates = list[tuple[Region, Block, list[Attribute]]]
_NONE = UnitAttr()


class _OpState:
    """The state of an op when it was last looked at.

    xDSL replaces the objects that an op holds when they change, so that identity is compared, except for the two dictionaries.

    Attributes:
        op: the op itself; while it is held, no other object has its ``id``.
        is_last: whether the op was the last one of its block.
        blocks: for each block in the op: its region, the block, and the types of the block's arguments.
        block_ops: the ops of each block.
        names_symbol: whether the op names a symbol.
    """

    __slots__ = ("attributes", "block_ops", "blocks", "is_last", "names_symbol", "op", "operands", "parent", "properties",
                 "regions", "results", "successors", "types")

    def __init__(self, op: Operation, blocks: _BlockStates, block_ops: list[list[Operation]]) -> None:
        self.op = op
        self.operands = op._operands
        self.results = op.results
        self.types = [result.type for result in op.results]
        self.properties = dict(op.properties)
        self.attributes = dict(op.attributes)
        self.successors = op._successors
        self.parent = op.parent
        self.is_last = op._next_op is None
        self.regions = op.regions
        self.blocks = blocks
        self.block_ops = block_ops
        self.names_symbol = any(isinstance(value, SymbolRefAttr)
                                for value in chain(op.properties.values(), op.attributes.values()))

    def is_same_to_others(self, op: Operation) -> bool:
        """Whether nothing changed that other ops' verifiers look at, the op's regions aside."""
        return (op._operands is self.operands and op.properties == self.properties and op.parent is self.parent
                and op.results is self.results and op._successors is self.successors
                and (not self.types or [result.type for result in op.results] == self.types))

    def is_untouched(self, op: Operation) -> bool:
        """Whether nothing changed of an op without regions."""
        return (not op.regions and not self.regions and op._operands is self.operands and op.parent is self.parent
                and op.properties == self.properties and op.attributes == self.attributes and op.results is self.results
                and (op._next_op is None) is self.is_last and op._successors is self.successors
                and (not self.types or [result.type for result in op.results] == self.types))

    def is_same_by_itself(self, op: Operation) -> bool:
        """Whether nothing changed that only the op's own verifier looks at. A core that ``assign-cores`` writes on it does not
        count."""
        now, before = op.attributes, self.attributes
        if now != before:
            if states_core(op) or {**now, CORE: _NONE} != {**before, CORE: _NONE}:
                return False
            self.attributes = dict(now)
        return (op._next_op is None) is self.is_last


class IncrementalVerifier:
    """Verifies one module repeatedly while passes change the module.

    Attributes:
        module: the module.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._states: dict[int, _OpState] = {}

    def verify(self) -> None:
        """Verifies the ops that the changes since the last call can affect; the first call verifies all ops.

        Raises:
            Exception: the exception that xDSL's ``verify`` raises for the module: a VerifyException, or an error inside a
                verifier.
        """
        try:
            walk = _ModuleWalk(self._states, self.module)
            for op in walk.ops_to_verify():
                cache_verification(type(op))
                op.verify(verify_nested_ops=any(block.is_empty for region in op.regions for block in region.blocks))
        except Exception:  # report the first op in the module's order, as xDSL does
            self.module.verify()
            raise
        self._states = walk.states


class _ModuleWalk:
    """One walk over a module, which compares its ops with their states before.

    Attributes:
        states: the states of its ops now, by ``id``.
    """

    def __init__(self, before: dict[int, _OpState], module: ModuleOp) -> None:
        self.before, self.module = before, module
        self.states: dict[int, _OpState] = {}
        self._changed: dict[int, Operation] = {}
        self._changed_values: list[SSAValue] = []
        self._symbol_users: dict[int, Operation] = {}
        self._walk(module, None, within=False)

    def ops_to_verify(self) -> list[Operation]:
        """Returns the ops whose verifier can give another result than before the last changes."""
        if not self._changed:
            return []
        users = {id(use.operation): use.operation for value in self._changed_values for use in value.uses}
        found = {**self._symbol_users, **{key: op for key, op in users.items() if key in self.states}, **self._changed}
        return list(found.values())

    def _walk(self, op: Operation, block: Block | None, *, within: bool) -> bool:
        """Compare an op, and all ops in it, with their states.

        Args:
            op: the op.
            block: the block that contains it.
            within: whether any op that contains it changed.

        Returns:
            Whether the op, or an op in it, changed.
        """
        key, before, states = id(op), self.before, self.states
        state = before.get(key)
        if op.parent is not block and op is not self.module:
            msg = f"{op.name} does not say which block it is in"
            raise ValueError(msg)
        blocks, block_ops = _blocks_of(op) if op.regions else ([], [])
        same = state is not None and state.is_same_to_others(op) and op.regions == state.regions and blocks == state.blocks
        if state is not None and same and state.is_same_by_itself(op) and block_ops == state.block_ops:
            changed = False
        else:
            state, changed = _OpState(op, blocks, block_ops), True
        inside = within or not same or (changed and isinstance(op, ModuleOp))
        states[key] = state
        if state.names_symbol:
            self._symbol_users[key] = op
        if not same:
            self._changed_values += op.results
        for (_, held, _), ops in zip(blocks, block_ops, strict=True):
            if not same:
                self._changed_values += held.args
            for each in ops:
                known = before.get(id(each))
                if (known is not None and known.parent is held and not inside and not known.names_symbol
                        and known.is_untouched(each)):
                    states[id(each)] = known  # the usual case, without a call
                elif self._walk(each, held, within=inside):
                    changed = True
        if changed or within:
            self._changed[key] = op
        return changed


def _blocks_of(op: Operation) -> tuple[_BlockStates, list[list[Operation]]]:
    """Returns the blocks in an op, and the ops of each."""
    blocks = [(region, block, [argument.type for argument in block.args]) for region in op.regions for block in region.blocks]
    for region, block, _ in blocks:
        if block.parent is not region:
            msg = f"a block of {op.name} does not say which region it is in"
            raise ValueError(msg)
    # list(block.ops) would walk the ops twice, once for their number
    return blocks, [list(iter(block.ops)) for _, block, _ in blocks]
