"""For each integer literal of a kernel's functions, whether the kernel uses it as a size or count, as an index, or otherwise.

Only sizes and counts are worth other values. A shift amount, a mask or a factor of the computation decides the results, and is
never edited, not even if a tile size has the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

import libcst as cst

from tilelang_npu.runtime.improve.subjects.subject import ScriptTree, all_of, called, is_macro

_SIZES = ("Kernel", "Parallel", "Persistent", "Pipelined", "grid", "reinterpretcast", "reshape", "serial", "unroll",
          "vectorized", "view", "view_experiment")
"""Functions of the language whose positional arguments are sizes or counts, in addition to ``alloc_*``."""
_DECLARATIONS = ("Buffer", "Tensor")
"""Functions of the language whose arguments are the sizes of the kernel's parameters, which edits must not change alone."""


class Use(IntEnum):
    """How a kernel uses a number; of several uses, the largest counts."""

    VALUE = 0
    """As a part of the computation, or in a way that is not known."""
    INDEX = 1
    """In an index, a condition on indices, or the size of a parameter: it changes together with an equal size."""
    SIZE = 2
    """As a size or count: the shape of a buffer, the extent of a slice, the bound of a loop, or the number of blocks."""


class LiteralUses(NamedTuple):
    """The uses of literals and names.

    Attributes:
        of_literal: the use of each integer literal, by the ``id`` of its node.
        of_name: the use of each variable; a variable that is missing is used as a value.
    """

    of_literal: Mapping[int, Use]
    of_name: Mapping[str, Use]


def literal_uses(tree: ScriptTree) -> LiteralUses:
    """Returns how the functions of a kernel use literals and variables.

    Uses flow backwards through assignments and into the arguments of macros: in ``row = i * 64`` the literal is an index if
    ``row`` is part of an index anywhere.
    """
    assignments = [assignment for statement in tree.module.body if isinstance(statement, cst.SimpleStatementLine)
                   for assignment in all_of(statement, (cst.Assign, cst.AnnAssign))]
    uses = _Uses({one.name.value: one for function in tree.functions for one in all_of(function, cst.FunctionDef)
                  if is_macro(one)})
    while True:
        before = dict(uses.of_name)
        for node in (*assignments, *tree.functions):
            uses.visit(node, Use.VALUE)
        if uses.of_name == before:
            return LiteralUses(uses.of_literal, uses.of_name)


class _Uses:
    """Collects uses during visits of a tree; visits are repeated until the uses of names do not change any more."""

    def __init__(self, macros: Mapping[str, cst.FunctionDef]) -> None:
        self.macros = macros
        self.of_literal: dict[int, Use] = {}
        self.of_name: dict[str, Use] = {}

    def visit(self, node: cst.CSTNode, use: Use) -> None:
        """Collects the uses in a tree whose value is used in a known way."""
        if isinstance(node, cst.Integer):
            self.of_literal[id(node)] = max(use, self.of_literal.get(id(node), Use.VALUE))
        elif isinstance(node, cst.Name):
            if use is not Use.VALUE:
                self.of_name[node.value] = max(use, self.of_name.get(node.value, Use.VALUE))
        elif isinstance(node, cst.Assign):
            for target in node.targets:
                self._assign(target.target, node.value)
        elif isinstance(node, (cst.AnnAssign, cst.AugAssign)):
            if node.value is not None:
                self._assign(node.target, node.value)
            if isinstance(node, cst.AnnAssign):
                self.visit(node.annotation, Use.VALUE)
        elif isinstance(node, cst.For):
            arguments = node.iter.args if isinstance(node.iter, cst.Call) else ()
            self._each((arg.value for arg in arguments if arg.keyword is None), Use.SIZE)
            self._each((arg.value for arg in arguments if arg.keyword is not None), Use.VALUE)
            self.visit(node.body, Use.VALUE)
        elif isinstance(node, cst.Call):
            self._call(node, use)
        elif isinstance(node, cst.Subscript):
            self.visit(node.value, Use.VALUE)
            for element in node.slice:
                self._each(element.slice.children, Use.SIZE if isinstance(element.slice, cst.Slice) else Use.INDEX)
        elif isinstance(node, (cst.If, cst.IfExp)):
            self.visit(node.test, Use.VALUE)
            self._each((child for child in node.children if child is not node.test), use)
        elif isinstance(node, cst.Comparison):
            # A comparison with elements of a buffer belongs to the computation.
            own = use if all_of(node, cst.Subscript) else max(use, Use.INDEX)
            self._each((node.left, *(one.comparator for one in node.comparisons)), own)
        elif isinstance(node, cst.BinaryOperation):
            is_shift = isinstance(node.operator, (cst.LeftShift, cst.RightShift))
            is_mask = isinstance(node.operator, (cst.BitAnd, cst.BitOr, cst.BitXor))
            self.visit(node.left, Use.VALUE if is_mask else use)
            self.visit(node.right, Use.VALUE if is_shift or is_mask else use)
        elif isinstance(node, cst.Attribute):
            self.visit(node.value, Use.VALUE)
        else:
            self._each(node.children, use)

    def _each(self, nodes: Iterable[cst.CSTNode], use: Use) -> None:
        for node in nodes:
            self.visit(node, use)

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        """Visits an assigned value with the use of the variable; a value that is stored in a buffer is a part of the
        computation."""
        if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List)) and (
                len(target.elements) == len(value.elements)):
            for one, other in zip(target.elements, value.elements, strict=True):
                self._assign(one.value, other.value)
            return
        if not isinstance(target, cst.Name):
            self.visit(target, Use.VALUE)
        self.visit(value, self.of_name.get(target.value, Use.VALUE) if isinstance(target, cst.Name) else Use.VALUE)

    def _call(self, node: cst.Call, use: Use) -> None:
        """Visits the arguments of a call; those of ``T.ceildiv`` and other functions of numbers have the use of the result."""
        allocates = isinstance(node.func, cst.Attribute) and node.func.attr.value.startswith("alloc_")
        macro = self.macros.get(node.func.value) if isinstance(node.func, cst.Name) else None
        names = [one.name.value for one in macro.params.params] if macro is not None else []
        for place, arg in enumerate(node.args):
            own = use
            if allocates or (called(node, *_SIZES) and arg.keyword is None):
                own = Use.SIZE
            elif called(node, *_DECLARATIONS):
                own = Use.INDEX
            elif macro is not None:
                name = arg.keyword.value if arg.keyword is not None else names[place] if place < len(names) else ""
                own = self.of_name.get(name, Use.VALUE)
            self.visit(arg.value, own)
        if not isinstance(node.func, cst.Name):
            self.visit(node.func, Use.VALUE)
