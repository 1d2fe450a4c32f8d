"""Launches: a launch of more blocks than cores gets one block for each core, with a loop over the block's share of the tiles; a
launch of one block gets several, among which the iterations of its outer loop are divided.

``T.use_swizzle`` orders the blocks of a launch. It is removed with the blocks that it orders: the loop has an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tilelang_npu.runtime.improve.subjects.subject import Replacement, ScriptTree, SubjectFacts, all_of, called
from tilelang_npu.runtime.reports.number_values import ValueStep


@dataclass(frozen=True)
class BlockCount:
    """The number of blocks of a launch whose blocks loop over their share of the tiles; 0 for the launch as it is.

    Attributes:
        name: the identity of the launch.
        line: its line.
        launch: the statement ``with T.Kernel(...)``.
        axes: the variables of the grid.
        others: the variables after them, such as the number of the Vector core.
        block_name: the name of the variable for the number of the block.
        language: the text of the name of the language's module.
        cores: the numbers of cores.
        tree: the script.
    """

    name: str
    line: int
    launch: cst.With
    axes: tuple[cst.Name, ...]
    others: tuple[cst.BaseExpression, ...]
    block_name: str
    language: str
    cores: tuple[int, ...]
    tree: ScriptTree = field(repr=False)
    original: int = 0
    reassociates: bool = False

    def steps(self, current: int) -> Iterator[ValueStep]:
        """Yields the numbers of cores, and their double."""
        for count in dict.fromkeys(self.cores):
            if count != current:
                yield ValueStep(count)
        if current and 2 * current not in self.cores:
            yield ValueStep(2 * current, fine=True)

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns the replacement of the ``with`` statement."""
        if value == 0:
            return {}

        def replace(updated: cst.CSTNode) -> cst.CSTNode:
            assert isinstance(updated, cst.With) and isinstance(updated.body, cst.IndentedBlock)
            call, names = updated.items[0].item, updated.items[0].asname
            assert isinstance(call, cst.Call) and names is not None
            sizes = [arg for arg in call.args if arg.keyword is None]
            rest = [arg for arg in call.args if arg.keyword is not None]
            body = [statement for statement in updated.body.body if not _is_swizzle(statement)]
            count = next((index for index, statement in enumerate(body) if not _is_allocation(statement)), len(body))
            domain = ", ".join(self.tree.code(arg.value) for arg in sizes)
            over = cst.parse_expression(f"{self.language}.Persistent([{domain}], {value}, {self.block_name})")
            loop = cst.For(_target(self.axes), over, cst.IndentedBlock(body[count:]))
            first = cst.Arg(cst.Integer(str(value)), comma=sizes[-1].comma if rest else cst.MaybeSentinel.DEFAULT)
            core = cst.Name(self.block_name)
            target = cst.Tuple([cst.Element(core), *[cst.Element(one) for one in self.others]]) if self.others else core
            item = updated.items[0].with_changes(item=call.with_changes(args=[first, *rest]),
                                                 asname=names.with_changes(name=target))
            return updated.with_changes(items=[item], body=updated.body.with_changes(body=[*body[:count], loop]))

        return {id(self.launch): replace}

    def what(self, value: int) -> str:
        """Returns the edit in words."""
        return f"{value} blocks, each with a loop over its share of the tiles"


@dataclass(frozen=True)
class DividedLoop:
    """The number of blocks among which the iterations of the outer loop of a launch with one block are divided.

    Attributes:
        name: the identity of the launch.
        line: the line of the loop.
        size: the number of blocks of the launch.
        block: the variable for the number of the block.
        block_name: the name for this variable; another one than it has if that is ``_``.
        loop: the loop.
        cores: the numbers of cores.
        tree: the script.
    """

    name: str
    line: int
    size: cst.Arg
    block: cst.Name
    block_name: str
    loop: cst.For
    cores: tuple[int, ...]
    tree: ScriptTree = field(repr=False)
    original: int = 1
    reassociates: bool = False

    def steps(self, current: int) -> Iterator[ValueStep]:
        """Yields the numbers of cores."""
        for count in dict.fromkeys(self.cores):
            if count != current:
                yield ValueStep(count)

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns the replacements of the number of blocks, of the loop's bound and of the loop's variable."""
        if value == 1:
            return {}
        block = self.block_name

        def fewer(updated: cst.CSTNode) -> cst.CSTNode:
            assert isinstance(updated, cst.For) and isinstance(updated.iter, cst.Call)
            assert isinstance(updated.body, cst.IndentedBlock) and isinstance(updated.target, cst.Name)
            (bound, *rest) = updated.iter.args
            text = self.tree.code(bound.value)
            inner = self.tree.unused_name(f"{updated.target.value}_own")
            share = cst.parse_expression(f"({text} - {block} + {value - 1}) // {value}")
            head = cst.parse_statement(f"{updated.target.value} = {inner} * {value} + {block}")
            assert isinstance(head, cst.SimpleStatementLine)
            call = updated.iter.with_changes(args=[bound.with_changes(value=share), *rest])
            return updated.with_changes(target=cst.Name(inner), iter=call,
                                        body=updated.body.with_changes(body=[head, *updated.body.body]))

        return {id(self.size): lambda updated: updated.with_changes(value=cst.Integer(str(value))), id(self.loop): fewer,
                id(self.block): lambda updated: updated.with_changes(value=block)}

    def what(self, value: int) -> str:
        """Returns the edit in words."""
        return f"{value} blocks that divide the iterations of the loop among them, in place of one block"


def launches(tree: ScriptTree, facts: SubjectFacts) -> Iterator[BlockCount | DividedLoop]:
    """Yields the launches whose number of blocks can be changed."""
    language = tree.language()
    if language is None:
        return
    core = tree.unused_name("core")
    position = 0
    for launch in tree.all(cst.With):
        call = launch.items[0].item
        if not isinstance(call, cst.Call) or not called(call, "Kernel") or len(launch.items) != 1:
            continue
        position += 1
        asname, sizes = launch.items[0].asname, [arg for arg in call.args if arg.keyword is None]
        if asname is None or not sizes or not isinstance(launch.body, cst.IndentedBlock) or any(
                called(inner, "Persistent", "Scope") for inner in all_of(launch, cst.Call)):
            continue
        swizzles = sum(called(inner, "use_swizzle") for inner in all_of(launch, cst.Call))
        if swizzles != sum(map(_is_swizzle, launch.body.body)):
            continue  # it is part of another statement
        target = asname.name
        elements: Sequence[cst.BaseExpression] = (
            [element.value for element in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target])
        axes, others = elements[:len(sizes)], elements[len(sizes):]
        if len(axes) != len(sizes) or len(others) > 1:
            continue
        named = [axis for axis in axes if isinstance(axis, cst.Name)]
        only = sizes[0].value
        if len(sizes) == 1 and isinstance(only, cst.Integer) and only.evaluated_value == 1:
            yield from _division(tree, launch, sizes[0], axes[0], facts, (f"launch {position}", core))
        elif len(named) == len(axes):
            yield BlockCount(f"launch {position}", tree.line(launch), launch, tuple(named), tuple(others), core,
                         tree.code(language), facts.cores, tree)


def _division(tree: ScriptTree, launch: cst.With, size: cst.Arg, block: cst.BaseExpression, facts: SubjectFacts,
              names: tuple[str, str]) -> Iterator[DividedLoop]:
    assert isinstance(launch.body, cst.IndentedBlock)
    found = [one for one in launch.body.body if isinstance(one, cst.For)]
    if len(found) == 1 and isinstance(block, cst.Name) and isinstance(found[0].target, cst.Name) and isinstance(
            found[0].iter, cst.Call) and len([arg for arg in found[0].iter.args if arg.keyword is None]) == 1:
        name, block_name = names
        yield DividedLoop(name, tree.line(found[0]), size, block, block_name if block.value == "_" else block.value, found[0],
                       facts.cores, tree)


def _target(axes: Sequence[cst.Name]) -> cst.BaseAssignTargetExpression:
    return axes[0] if len(axes) == 1 else cst.Tuple([cst.Element(axis) for axis in axes], lpar=[], rpar=[])


def _is_swizzle(statement: cst.CSTNode) -> bool:
    """Whether a statement is a call of ``T.use_swizzle``."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    (only,) = statement.body
    return isinstance(only, cst.Expr) and called(only.value, "use_swizzle")


def _is_allocation(statement: cst.CSTNode) -> bool:
    """Whether a statement only allocates a buffer."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    (only,) = statement.body
    return isinstance(only, cst.Assign) and isinstance(only.value, cst.Call) and (
        isinstance(only.value.func, cst.Attribute) and only.value.func.attr.value.startswith("alloc"))
