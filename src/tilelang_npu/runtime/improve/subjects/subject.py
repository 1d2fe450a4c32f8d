"""The interface of an editable part of a script, and the tree of a script that keeps comments and layout (LibCST)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from tilelang_npu.runtime.reports.number_values import ValueStep

Node = TypeVar("Node", bound=cst.CSTNode)
Replacement = Callable[[cst.CSTNode], "cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]"]
"""A function that returns the new node in place of a node, or several statements, of which the last one is the new node. The
node and its parts can have been edited already."""


class NotApplicable(Exception):
    """An edit does not fit the statements that other edits have made."""


class Subject(Protocol):
    """A part of a kernel's source that an edit changes, with a number that says how.

    Attributes:
        name: the identity of the subject, which is different for each subject of a script.
        line: the first line of the subject in the script.
        original: the number of the script as it is.
        reassociates: whether an edit computes other roundings by intention.
    """

    @property
    def name(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def original(self) -> int: ...
    @property
    def reassociates(self) -> bool: ...

    def steps(self, current: int) -> Iterable[ValueStep]:
        """Returns the values to try after another value."""

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns, by the ``id`` of a node of the script's tree, how the node is replaced for a value."""

    def what(self, value: int) -> str:
        """Returns the edit from the original to a value in words."""


class ScriptTree:
    """The syntax tree of a script.

    Args:
        text: the script.
        factory: the name of the factory at the top level of the script.

    Attributes:
        text: the script.
        module: the tree.
        factory: the tree of the factory; None if the script has no function of this name at its top level.
        functions: the functions whose statements belong to the kernel: the factory, and the macros at the top level that its
            statements, or those of such a macro, call.
    """

    def __init__(self, text: str, factory: str) -> None:
        wrapper = MetadataWrapper(cst.parse_module(text))
        self.text = text
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._names = frozenset(name.value for name in all_of(self.module, cst.Name))
        by_name = {one.name.value: one for one in self.module.body if isinstance(one, cst.FunctionDef)}
        self.factory = by_name.get(factory)
        self.functions = [] if self.factory is None else [self.factory]
        for function in self.functions:  # the list grows
            for name in all_of(function, cst.Name):
                found = by_name.get(name.value)
                if found is not None and found not in self.functions and is_macro(found):
                    self.functions.append(found)

    def line(self, node: cst.CSTNode) -> int:
        """Returns the line of a node, counted from 1."""
        return int(self._positions[node].start.line)

    def factory_calls(self, line: int) -> list[cst.Call]:
        """Returns the calls of the factory on a line of the script: ``factory(...)`` and ``factory.compile(...)``."""
        assert self.factory is not None
        name, found = self.factory.name.value, []
        for call in all_of(self.module, cst.Call):
            function = call.func
            if isinstance(function, cst.Attribute) and function.attr.value == "compile":
                function = function.value
            place = self._positions[call]
            if isinstance(function, cst.Name) and function.value == name and place.start.line <= line <= place.end.line:
                found.append(call)
        return found

    def code(self, node: cst.CSTNode) -> str:
        """Returns the text of a node."""
        return self.module.code_for_node(node)

    def all(self, kind: type[Node]) -> Iterator[Node]:
        """Yields the nodes of a kind in the kernel's functions."""
        for function in self.functions:
            yield from all_of(function, kind)

    def language(self) -> cst.BaseExpression | None:
        """Returns the name that the script has for the module of the language, from a call of ``NAME.Kernel``."""
        return next((call.func.value for call in self.all(cst.Call)
                     if called(call, "Kernel") and isinstance(call.func, cst.Attribute)), None)

    def unused_name(self, wanted: str, taken: Collection[str] = ()) -> str:
        """Returns a name for a variable that an edit introduces: the wanted one, or the wanted one with a number from 2 on.

        Args:
            wanted: the name.
            taken: names that are not used, in addition to all names of the script.
        """
        names = (wanted, *(f"{wanted}_{number}" for number in range(2, len(self._names) + len(taken) + 3)))
        return next(name for name in names if name not in self._names and name not in taken)

    def edited(self, *edits: Mapping[int, Replacement]) -> str:
        """Returns the script with nodes replaced.

        Args:
            edits: for each edit, how a node is replaced, by the ``id`` of the node. If several edits replace a node, each gets
                the node that the previous edit has made.

        Raises:
            NotApplicable: a replacement does not fit the other ones.
        """
        by_node: dict[int, list[Replacement]] = {}
        for edit in edits:
            for node, replacement in edit.items():
                by_node.setdefault(node, []).append(replacement)

        class Replace(cst.CSTTransformer):
            def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode  # type: ignore[override]  # any node
                         ) -> cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]:
                made: list[Any] = [updated]
                for replace in by_node.get(id(original), ()):
                    new = replace(made[-1])
                    made[-1:] = new if isinstance(new, cst.FlattenSentinel) else [new]
                return made[0] if len(made) == 1 else cst.FlattenSentinel(made)

        return self.module.visit(Replace()).code


@dataclass(frozen=True)
class SubjectFacts:
    """What subjects need to know of a kernel to propose values.

    Attributes:
        passed: the arguments of the factory's call, by the names of the parameters, whose defaults have no effect.
        cores: the numbers of Cube cores and of Vector cores.
        extents: the different sizes of the kernel's parameters.
        call_line: a line of the factory's call in the script; None if its arguments cannot be edited.
    """

    passed: Mapping[str, object]
    cores: tuple[int, ...]
    extents: tuple[int, ...]
    call_line: int | None = None


def is_macro(node: cst.FunctionDef) -> bool:
    """Whether a function is under ``@T.macro``."""
    return any(_last_name(one.decorator) == "macro" for one in node.decorators)


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Call):
        return _last_name(node.func)
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def called(node: cst.CSTNode, *names: str) -> bool:
    """Whether a node is a call of ``T.NAME`` (or of a function of another module) with one of the names."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in names


def all_of(node: cst.CSTNode, kind: type[Node] | tuple[type[Node], ...]) -> list[Node]:
    """Returns the nodes of a kind, or of several kinds, in a tree, in the order of the text."""
    found: list[Node] = []

    class Visitor(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, kind):
                found.append(node)
            return True

    node.visit(Visitor())
    return found
