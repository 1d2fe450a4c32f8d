"""Loops that load tiles: they are pipelined, or get another number of stages; or their iterations are divided among blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from tilelang_npu.runtime.improve.subjects.subject import Replacement, ScriptTree, all_of, called
from tilelang_npu.runtime.reports.number_values import ValueStep

_FIRST_STAGES = 2
"""The ``num_stages`` that is tried first."""
_MAX_STAGES = 4
"""The largest ``num_stages`` that is proposed."""


@dataclass(frozen=True)
class LoopStages:
    """The number of stages of a loop; 0 for a loop that is not pipelined.

    Attributes:
        name: the identity of the loop.
        original: the number of stages in the script.
        line: the line of the loop.
        call: the call after ``in``.
        language: the name of the module of the language, for a call of ``range``.
    """

    name: str
    original: int
    line: int
    call: cst.Call
    language: cst.BaseExpression
    reassociates: bool = False

    def steps(self, current: int) -> Iterator[ValueStep]:
        """Yields the other numbers of stages."""
        for stages in range(1 if self.original else 2, _MAX_STAGES + 1):
            if stages != current:
                yield ValueStep(stages, fine=stages != _FIRST_STAGES)

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns the replacement of the call after ``in``."""
        def replace(updated: cst.CSTNode) -> cst.CSTNode:
            assert isinstance(updated, cst.Call)
            if value == 0:
                return updated
            given = next((arg for arg in updated.args if arg.keyword is not None and arg.keyword.value == "num_stages"), None)
            if given is not None:
                new = given.with_changes(value=cst.Integer(str(value)))
                return updated.with_changes(args=[new if arg is given else arg for arg in updated.args])
            last = updated.args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            args = [*updated.args[:-1], last, _stages_argument(value)]
            return updated.with_changes(func=cst.Attribute(self.language, cst.Name("Pipelined")), args=args)

        return {id(self.call): replace}

    def what(self, value: int) -> str:
        """Returns the edit in words."""
        return (f"num_stages={value} in place of {self.original}" if self.original else
                f"T.Pipelined with num_stages={value} in place of a serial loop")


def _stages_argument(stages: int) -> cst.Arg:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(cst.Integer(str(stages)), cst.Name("num_stages"), equal)


def loops(tree: ScriptTree) -> Iterator[LoopStages]:
    """Yields the loops with a copy or a product whose number of stages can be changed."""
    language = tree.language()
    if language is None:
        return
    position = 0
    for loop in tree.all(cst.For):
        call = loop.iter
        if not isinstance(call, cst.Call) or not any(called(inner, "copy", "gemm") for inner in all_of(loop.body, cst.Call)):
            continue
        plain = all(arg.keyword is None and not arg.star for arg in call.args)
        original = 0
        if called(call, "Pipelined"):
            given = next((arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "num_stages"),
                         None)
            if given is not None and not isinstance(given, cst.Integer):
                continue  # a variable, which is a number
            original = given.evaluated_value if isinstance(given, cst.Integer) else 0
        elif not (called(call, "serial") or (isinstance(call.func, cst.Name) and call.func.value == "range")) or (
                not plain or not 1 <= len(call.args) <= 2):
            continue
        position += 1
        yield LoopStages(f"loop {position}", original, tree.line(loop), call, language)
