"""Divisions by one number of a row become products with its reciprocal, which is computed once for each row.

A vector division takes several times the cycles of a product. In ``x[r, c] / total[r, 0]`` of a ``T.Parallel`` over r and c,
the divisor is the same for all c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from tilelang_npu.runtime.improve.subjects.subject import Replacement, ScriptTree, all_of, called
from tilelang_npu.runtime.reports.number_values import ValueStep


@dataclass(frozen=True)
class Reciprocal:
    """Divisions by one divisor in a loop; the value 1 replaces them by products, and 0 leaves them.

    Attributes:
        name: the identity of the divisor and the loop.
        line: the line of the first division.
        loop: the loop of ``T.Parallel``.
        variables: the loop's variables, in order.
        divisor: the divisor.
        places: the divisions.
        tree: the script.
    """

    name: str
    line: int
    loop: cst.For
    variables: tuple[str, ...]
    divisor: str
    places: tuple[cst.BinaryOperation, ...]
    tree: ScriptTree = field(repr=False)
    original: int = 0
    reassociates: bool = True

    def steps(self, current: int) -> Iterator[ValueStep]:
        """Yields the step to a product."""
        if current == 0:
            yield ValueStep(1, fine=True)

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns the replacements of the divisions, and of the loop by two loops."""
        if value == 0:
            return {}

        def product(updated: cst.CSTNode) -> cst.CSTNode:
            assert isinstance(updated, cst.BinaryOperation) and isinstance(updated.operator, cst.Divide)
            space = updated.operator
            return updated.with_changes(operator=cst.Multiply(space.whitespace_before, space.whitespace_after))

        def with_reciprocal(updated: cst.CSTNode) -> cst.FlattenSentinel[cst.BaseStatement]:
            assert isinstance(updated, cst.For) and isinstance(updated.iter, cst.Call)
            used = [(name, arg) for name, arg in zip(self.variables, updated.iter.args, strict=True)
                    if name in {one.value for one in all_of(cst.parse_expression(self.divisor), cst.Name)}]
            names = ", ".join(name for name, _ in used)
            extents = ", ".join(self.tree.code(arg.value) for _, arg in used)
            function = self.tree.code(updated.iter.func)
            text = f"for {names} in {function}({extents}):\n    {self.divisor} = 1 / {self.divisor}"
            made = cst.parse_statement(text)
            assert isinstance(made, cst.For)
            return cst.FlattenSentinel([made.with_changes(leading_lines=updated.leading_lines),
                                        updated.with_changes(leading_lines=[])])

        return {**{id(place): product for place in self.places}, id(self.loop): with_reciprocal}

    def what(self, value: int) -> str:
        """Returns the edit in words."""
        return f"a product with the reciprocal of {self.divisor}, in place of a division"


def divisions(tree: ScriptTree) -> Iterator[Reciprocal]:
    """Yields the divisors that are the same for all points along the last axis of a loop."""
    for loop in tree.all(cst.For):
        call, target = loop.iter, loop.target
        if not called(call, "Parallel") or not isinstance(call, cst.Call) or not isinstance(target, cst.Tuple):
            continue
        variables = [element.value.value for element in target.elements if isinstance(element.value, cst.Name)]
        if len(variables) != len(call.args) or any(arg.keyword is not None for arg in call.args):
            continue
        found: dict[str, list[cst.BinaryOperation]] = {}
        for operation in all_of(loop.body, cst.BinaryOperation):
            divisor = operation.right
            if isinstance(operation.operator, cst.Divide) and isinstance(divisor, cst.Subscript):
                names = {one.value for one in all_of(divisor, cst.Name)}
                if variables[-1] not in names and names & set(variables):
                    found.setdefault(tree.code(divisor), []).append(operation)
        for divisor_text, places in found.items():
            line = tree.line(places[0])
            yield Reciprocal(f"division {line} {divisor_text}", line, loop, tuple(variables), divisor_text, tuple(places), tree)
