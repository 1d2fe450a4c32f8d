"""Numbers: tile sizes, numbers of blocks and other integers of a kernel get other values.

A number is an integer that the author wrote for the kernel: an argument of the factory's call in the script, the default of a
parameter that the call does not pass, a literal that a variable of the factory or of the script is set to, or a literal in the
kernel's statements. Variables and literals are edited only if the kernel uses them as a size or count (``literal_uses.py``).
Whether the kernel's parameters or results depend on a number is not known here: such edits are rejected after they are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from tilelang_npu.runtime.improve.subjects.literal_uses import Use, literal_uses
from tilelang_npu.runtime.improve.subjects.subject import Replacement, ScriptTree, SubjectFacts, all_of, called
from tilelang_npu.runtime.reports.number_values import ValueStep, values_to_try

_LEAST_LITERAL = 16
"""Literals in the kernel's statements below this one are indices and counts rather than sizes of tiles."""
_MAX_STAGES = 4
"""The largest number of stages of a loop that is proposed."""


@dataclass(frozen=True)
class SourceNumber:
    """An integer of the kernel's source.

    Attributes:
        name: the name of the variable or parameter; for a literal in statements, its value in quotes.
        original: the integer.
        line: its first line.
        places: the literals, or the expression of an argument, to replace.
        in_grid: whether the launch has as many blocks.
        counts_stages: whether a loop has as many stages.
        facts: the numbers of cores, and the sizes of the kernel's parameters.
        parameter: for an argument of the factory's call, the name of the parameter; empty for other numbers.
    """

    name: str
    original: int
    line: int
    places: tuple[cst.BaseExpression, ...]
    in_grid: bool
    counts_stages: bool
    facts: SubjectFacts
    parameter: str = ""
    reassociates: bool = False

    def steps(self, current: int) -> Iterator[ValueStep]:
        """Yields the values to try after another one: doubled and halved, the number of cores, and shares of an extent."""
        if self.counts_stages:
            yield from (ValueStep(value, fine=value > current + 1) for value in range(1, _MAX_STAGES + 1) if value != current)
            return
        yield from values_to_try(current, self.facts.cores, self.facts.extents, in_grid=self.in_grid)

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns the replacements of the literals."""
        return {id(place): lambda _: cst.Integer(str(value)) for place in self.places}

    def what(self, value: int) -> str:
        """Returns the edit in words."""
        name = self.name.partition("#")[0]
        return (f"{value} in place of {self.original}" if name.startswith("'") else
                f"{name} = {value} in place of {self.original}")


def numbers(tree: ScriptTree, facts: SubjectFacts) -> Iterator[SourceNumber]:
    """Yields the integers of a kernel's source that can be replaced."""
    if tree.factory is None:
        return
    sizes = [arg for call in tree.all(cst.Call) if called(call, "Kernel") for arg in call.args if arg.keyword is None]
    in_grid = {name.value for size in sizes for name in all_of(size, cst.Name)}
    literals_in_grid = {id(literal) for size in sizes for literal in all_of(size, cst.Integer)}
    stages = {arg.value.value for call in tree.all(cst.Call) for arg in call.args
              if arg.keyword is not None and arg.keyword.value == "num_stages" and isinstance(arg.value, cst.Name)}
    taken: dict[str, int] = {}
    for name, number, expression in _arguments(tree, facts):
        taken[name] = 1
        yield SourceNumber(name, number, tree.line(expression), (expression,), name in in_grid, name in stages, facts,
                           parameter=name)
    named: list[tuple[list[str], cst.Integer]] = []
    for parameter in (*tree.factory.params.params, *tree.factory.params.kwonly_params):
        if isinstance(parameter.default, cst.Integer) and parameter.name.value not in facts.passed:
            named.append(([parameter.name.value], parameter.default))
    uses = literal_uses(tree)
    outside = [assignment for statement in tree.module.body if isinstance(statement, cst.SimpleStatementLine)
               for assignment in all_of(statement, cst.Assign)]
    for assignment in (*outside, *tree.all(cst.Assign)):
        for targets, assigned in _assigned(assignment):
            if all(name in stages or uses.of_name.get(name) is Use.SIZE for name in targets):
                named += [(targets, literal) for literal in _alternatives(assigned)]
    for variables, literal in named:
        name = " = ".join(variables)
        taken[name] = taken.get(name, 0) + 1
        if literal.evaluated_value > 0:
            unique = name if taken[name] == 1 else f"{name}#{taken[name]}"
            yield SourceNumber(unique, literal.evaluated_value, tree.line(literal), (literal,),
                               not in_grid.isdisjoint(variables), not stages.isdisjoint(variables), facts)
    used = {id(literal) for _, literal in named}
    by_value: dict[int, list[cst.Integer]] = {}
    for function in tree.functions:
        for literal in all_of(function.body, cst.Integer):
            if (id(literal) not in used and literal.evaluated_value >= _LEAST_LITERAL
                    and uses.of_literal.get(id(literal), Use.VALUE) is not Use.VALUE):
                by_value.setdefault(literal.evaluated_value, []).append(literal)
    for value, places in by_value.items():
        if all(uses.of_literal[id(one)] is not Use.SIZE for one in places):
            continue
        only_in_grid = all(id(one) in literals_in_grid for one in places)
        yield SourceNumber(f"'{value}'", value, tree.line(places[0]), tuple(places), only_in_grid, counts_stages=False,
                           facts=facts)


def _arguments(tree: ScriptTree, facts: SubjectFacts) -> Iterator[tuple[str, int, cst.BaseExpression]]:
    """Yields the positive integers that the factory's call passes: parameter, integer, and the expression to replace.

    The expression is the literal of the argument; or, if the argument is a variable that is only used there, the literal that
    the variable is set to; or else the argument itself.
    """
    assert tree.factory is not None
    calls = tree.factory_calls(facts.call_line) if facts.call_line is not None else []
    if len(calls) != 1 or any(arg.star for arg in calls[0].args):
        return
    parameters = [*tree.factory.params.posonly_params, *tree.factory.params.params]
    positional = (arg.value for arg in calls[0].args if arg.keyword is None)
    expressions = dict(zip((one.name.value for one in parameters), positional, strict=False))
    expressions |= {arg.keyword.value: arg.value for arg in calls[0].args if arg.keyword is not None}
    names = {one.name.value for one in (*parameters, *tree.factory.params.kwonly_params)}
    for name, value in expressions.items():
        number = facts.passed.get(name)
        if name not in names or type(number) is not int or number <= 0:
            continue
        if isinstance(value, cst.Name) and (literal := _only_value(tree, value.value)) is not None:
            value = literal
        yield name, number, value


def _only_value(tree: ScriptTree, name: str) -> cst.Integer | None:
    """Returns the literal that a variable is set to, if the script sets it once and uses it once."""
    uses = [one for one in all_of(tree.module, cst.Name) if one.value == name]
    values = [value for one in all_of(tree.module, cst.Assign) for targets, value in _assigned(one) if targets == [name]]
    return values[0] if len(uses) == 2 and len(values) == 1 and isinstance(values[0], cst.Integer) else None


def _assigned(assignment: cst.Assign) -> Iterator[tuple[list[str], cst.BaseExpression]]:
    """Yields the variables that an assignment sets to one value, and the value: two pairs for ``a, b = 1, 2``."""
    targets = [one.target for one in assignment.targets]
    if all(isinstance(target, cst.Name) for target in targets):
        yield [target.value for target in targets if isinstance(target, cst.Name)], assignment.value
    elif len(targets) == 1 and isinstance(targets[0], cst.Tuple) and isinstance(assignment.value, cst.Tuple):
        elements = [one.value for one in targets[0].elements]
        values = [one.value for one in assignment.value.elements]
        if len(elements) == len(values):
            yield from (([name.value], value) for name, value in zip(elements, values, strict=True)
                        if isinstance(name, cst.Name))


def _alternatives(value: cst.BaseExpression) -> list[cst.Integer]:
    """Returns the integers that an assigned value is: a literal, or the literals of a conditional expression."""
    if isinstance(value, cst.IfExp):
        return [*_alternatives(value.body), *_alternatives(value.orelse)]
    return [value] if isinstance(value, cst.Integer) else []
