"""Verifying a module behind each pass, by asking the ops about which the answer can have changed.

A pass changes few ops, and xDSL's ``verify`` asks all. What a verifier looks at is, by MLIR's convention and in these dialects,
the op itself, what makes its operands, what is inside it, what it is in, and the symbols it names. So these are asked: each op
that changed, the users of its results, all that it is in, all that is in it, and each op that names a symbol. Discardable
attributes are an op's own affair, a module's excepted, which name the chip.

``tests/transforms/test_verified.py`` spoils modules in every way there is and holds that what xDSL's ``verify`` finds is found.
"""

from __future__ import annotations

from itertools import chain

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilelang_npu.dialects.ir.signatures import cache_verification
from tilelang_npu.transforms.ir.cores import CORE, states_core

__all__ = ["Verified"]

_Blocks = list[tuple[Region, Block, list[Attribute]]]
_NONE = UnitAttr()


class _Was:
    """What an op was when it was last looked at: of what it has, all but the two dictionaries is replaced where it changes.

    Attributes:
        op: the op itself: as long as it is held, its identity is no other's.
        last: whether it was the last of its block.
        blocks: the blocks in it: where each is, and the types of its arguments.
        members: the ops of each.
        names: whether it names a symbol.
    """

    __slots__ = ("attributes", "blocks", "last", "members", "names", "op", "operands", "parent", "properties", "regions",
                 "results", "successors", "types")

    def __init__(self, op: Operation, blocks: _Blocks, members: list[list[Operation]]) -> None:
        self.op = op
        self.operands = op._operands
        self.results = op.results
        self.types = [result.type for result in op.results]
        self.properties = dict(op.properties)
        self.attributes = dict(op.attributes)
        self.successors = op._successors
        self.parent = op.parent
        self.last = op._next_op is None
        self.regions = op.regions
        self.blocks = blocks
        self.members = members
        self.names = any(isinstance(value, SymbolRefAttr) for value in chain(op.properties.values(), op.attributes.values()))

    def is_same(self, op: Operation) -> bool:
        """Whether the op is to others what it was, its regions aside."""
        return (op._operands is self.operands and op.properties == self.properties and op.parent is self.parent
                and op.results is self.results and op._successors is self.successors
                and (not self.types or [result.type for result in op.results] == self.types))

    def is_untouched(self, op: Operation) -> bool:
        """Whether an op without regions is in all what it was."""
        return (not op.regions and not self.regions and op._operands is self.operands and op.parent is self.parent
                and op.properties == self.properties and op.attributes == self.attributes and op.results is self.results
                and (op._next_op is None) is self.last and op._successors is self.successors
                and (not self.types or [result.type for result in op.results] == self.types))

    def is_own(self, op: Operation) -> bool:
        """Whether what is the op's own affair is what it was, a core aside that is written on it and that it does not state."""
        now, before = op.attributes, self.attributes
        if now != before:
            if states_core(op) or {**now, CORE: _NONE} != {**before, CORE: _NONE}:
                return False
            self.attributes = dict(now)
        return (op._next_op is None) is self.last


class Verified:
    """A module that passes change, and that was found to verify when it was last asked.

    Attributes:
        module: the module.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._seen: dict[int, _Was] = {}

    def check(self) -> None:
        """Verify the module.

        Raises:
            Exception: what xDSL's ``verify`` raises: a VerifyException, or what a verifier trips over.
        """
        try:
            look = _Look(self._seen, self.module)
            for op in look.asked():
                cache_verification(type(op))
                op.verify(verify_nested_ops=any(block.is_empty for region in op.regions for block in region.blocks))
        except Exception:  # that of the first op in the module's order is the one to be told
            self.module.verify()
            raise
        self._seen = look.now


class _Look:
    """One walk over a module.

    Attributes:
        now: what its ops are, by identity.
    """

    def __init__(self, before: dict[int, _Was], module: ModuleOp) -> None:
        self.before, self.module = before, module
        self.now: dict[int, _Was] = {}
        self._changed: dict[int, Operation] = {}
        self._users: list[SSAValue] = []
        self._naming: dict[int, Operation] = {}
        self._at(module, None, within=False)

    def asked(self) -> list[Operation]:
        """The ops about which the answer can have changed."""
        if not self._changed:
            return []
        users = {id(use.operation): use.operation for value in self._users for use in value.uses}
        found = {**self._naming, **{key: op for key, op in users.items() if key in self.now}, **self._changed}
        return list(found.values())

    def _at(self, op: Operation, block: Block | None, *, within: bool) -> bool:
        """Look at an op and all in it.

        Args:
            op: the op.
            block: what it stands in.
            within: whether anything that it is in changed.

        Returns:
            Whether it changed, or something in it.
        """
        key, before, now = id(op), self.before, self.now
        seen = before.get(key)
        if op.parent is not block and op is not self.module:
            msg = f"{op.name} does not say which block it is in"
            raise ValueError(msg)
        blocks, members = _inside(op) if op.regions else ([], [])
        same = seen is not None and seen.is_same(op) and op.regions == seen.regions and blocks == seen.blocks
        if seen is not None and same and seen.is_own(op) and members == seen.members:
            changed = False
        else:
            seen, changed = _Was(op, blocks, members), True
        inside = within or not same or (changed and isinstance(op, ModuleOp))
        now[key] = seen
        if seen.names:
            self._naming[key] = op
        if not same:
            self._users += op.results
        for (_, held, _), ops in zip(blocks, members, strict=True):
            if not same:
                self._users += held.args
            for each in ops:
                known = before.get(id(each))
                if (known is not None and known.parent is held and not inside and not known.names
                        and known.is_untouched(each)):
                    now[id(each)] = known  # as nearly all are
                elif self._at(each, held, within=inside):
                    changed = True
        if changed or within:
            self._changed[key] = op
        return changed


def _inside(op: Operation) -> tuple[_Blocks, list[list[Operation]]]:
    """The blocks in an op, and their ops."""
    blocks = [(region, block, [argument.type for argument in block.args]) for region in op.regions for block in region.blocks]
    for region, block, _ in blocks:
        if block.parent is not region:
            msg = f"a block of {op.name} does not say which region it is in"
            raise ValueError(msg)
    return blocks, [list(iter(block.ops)) for _, block, _ in blocks]  # it has a length, for which it is walked once more
