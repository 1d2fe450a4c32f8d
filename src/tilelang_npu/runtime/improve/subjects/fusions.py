"""Launches that follow each other and loop over the same tiles become one launch, so that what one writes and the next one
reads stays on the chip.

Two launches fit if they have the same text of ``T.Kernel`` and its variables, and if the last statements of their bodies are
loops with the same text. Their bodies are put one after the other in the innermost loops and branches that both have. Buffers
and numbers that both define with the same text are shared; a name that they define differently is renamed in the second one. A
tile that is stored to a tensor and loaded again from the same place is copied on the chip; the store is left out if the tensor
is one of ``T.alloc_global`` that nothing else uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import libcst as cst

from tilelang_npu.runtime.improve.subjects.subject import NotApplicable, Replacement, ScriptTree, all_of, called
from tilelang_npu.runtime.reports.number_values import ValueStep

Statements = Sequence[cst.BaseStatement]


@dataclass(frozen=True)
class Fusion:
    """A run of launches that can be one; the value is the number of launches that it becomes.

    Attributes:
        name: the identity of the run.
        original: the number of launches.
        line: the line of the second launch.
        block: the body of which the launches are statements.
        first: the position of the first launch in it.
        tree: the script.
    """

    name: str
    original: int
    line: int
    block: cst.IndentedBlock
    first: int
    tree: ScriptTree = field(repr=False)
    reassociates: bool = False

    def steps(self, current: int) -> Iterator[ValueStep]:
        """Yields the step to one launch."""
        if current > 1:
            yield ValueStep(1)

    def replacements(self, value: int) -> Mapping[int, Replacement]:
        """Returns the replacement of the body."""
        if value != 1:
            return {}

        def replace(updated: cst.CSTNode) -> cst.CSTNode:
            assert isinstance(updated, cst.IndentedBlock)
            body = list(updated.body)
            run = body[self.first:self.first + self.original]
            if not all(isinstance(one, cst.With) and isinstance(one.body, cst.IndentedBlock) for one in run):
                raise NotApplicable
            launches: list[cst.With] = [one for one in run if isinstance(one, cst.With)]
            fused = reduce(self._fused, launches)
            made = _forwarded([*body[:self.first], fused, *body[self.first + self.original:]], self.tree)
            return updated.with_changes(body=made)

        return {id(self.block): replace}

    def _fused(self, first: cst.With, second: cst.With) -> cst.With:
        one, other = _body_of(first), _renamed(_body_of(first), _body_of(second), self.tree)
        return first.with_changes(body=first.body.with_changes(body=_merged(one, other, self.tree)))

    def what(self, value: int) -> str:
        """Returns the edit in words."""
        return f"one launch in place of {self.original}"


def fusions(tree: ScriptTree) -> Iterator[Fusion]:
    """Yields the runs of launches that can be one launch."""
    position = 0
    for block in tree.all(cst.IndentedBlock):
        start = 0
        while start < len(block.body):
            end = start + 1
            while end < len(block.body) and _fits(block.body[end - 1], block.body[end], tree):
                end += 1
            if end - start > 1:
                position += 1
                yield Fusion(f"fusion {position}", end - start, tree.line(block.body[start + 1]), block, start, tree)
            start = end


def _body_of(statement: cst.CSTNode) -> Statements:
    body = getattr(statement, "body", None)
    return body.body if isinstance(body, cst.IndentedBlock) else ()


def _head_of(statement: cst.CSTNode, tree: ScriptTree) -> str | None:
    """Returns the text of a launch, loop or branch before its body; None for any other statement."""
    if isinstance(statement, cst.With) and len(statement.items) == 1 and called(statement.items[0].item, "Kernel"):
        asname = statement.items[0].asname
        return f"{tree.code(statement.items[0].item)} as {tree.code(asname.name) if asname is not None else ''}"
    if isinstance(statement, cst.For) and statement.orelse is None:
        return f"for {tree.code(statement.target)} in {_iterations(statement.iter, tree)}"
    if isinstance(statement, cst.If) and statement.orelse is None:
        return f"if {tree.code(statement.test)}"
    return None


def _iterations(call: cst.BaseExpression, tree: ScriptTree) -> str:
    """Returns the text after ``in``, which is the same for a serial loop and a pipelined one over the same numbers."""
    if isinstance(call, cst.Call) and called(call, "serial", "Pipelined"):
        return ", ".join(tree.code(arg.value) for arg in call.args if arg.keyword is None)
    return tree.code(call)


def _fits(first: cst.CSTNode, second: cst.CSTNode, tree: ScriptTree) -> bool:
    """Whether two statements are launches with the same head, and the last statements of their bodies are loops with the same
    head."""
    head = _head_of(first, tree)
    if not isinstance(first, cst.With) or head is None or head != _head_of(second, tree):
        return False
    one, other = _body_of(first), _body_of(second)
    return bool(one and other) and isinstance(one[-1], cst.For) and _head_of(one[-1], tree) == _head_of(other[-1], tree)


def _merged(first: Statements, second: Statements, tree: ScriptTree) -> list[cst.BaseStatement]:
    """Returns the statements of two bodies as one body."""
    same = {_text(statement, tree) for statement in first if _is_definition(statement)}
    kept = [statement for statement in second if _text(statement, tree) not in same]
    if first and kept and isinstance(first[-1], (cst.For, cst.If)) and (head := _head_of(first[-1], tree)) is not None:
        last = kept[-1]
        if head == _head_of(last, tree) and "Parallel" not in head:
            inner = _merged(_body_of(first[-1]), _body_of(last), tree)
            return [*first[:-1], *kept[:-1], first[-1].with_changes(body=first[-1].body.with_changes(body=inner))]
    return [*first, *kept]


def _text(statement: cst.CSTNode, tree: ScriptTree) -> str:
    """Returns the text of a statement without comments around it."""
    if isinstance(statement, cst.SimpleStatementLine):
        return "; ".join(tree.code(one) for one in statement.body)
    return tree.code(statement).strip()


def _is_definition(statement: cst.CSTNode) -> bool:
    """Whether a statement sets one variable."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    (only,) = statement.body
    return isinstance(only, cst.Assign) and len(only.targets) == 1 and isinstance(only.targets[0].target, cst.Name)


def _definitions(statements: Statements, tree: ScriptTree) -> dict[str, str]:
    """Returns the texts of the statements that set a variable, by the name of the variable, also in loops and branches."""
    found: dict[str, str] = {}
    for statement in statements:
        for inner in all_of(statement, cst.SimpleStatementLine):
            if _is_definition(inner):
                (only,) = inner.body
                assert isinstance(only, cst.Assign)
                name = only.targets[0].target
                assert isinstance(name, cst.Name)
                found[name.value] = _text(inner, tree)
    return found


def _renamed(first: Statements, second: Statements, tree: ScriptTree) -> list[cst.BaseStatement]:
    """Returns the second statements with other names for variables that both set differently."""
    one, other = _definitions(first, tree), _definitions(second, tree)
    # Names that other edits, or the fusion with an earlier launch, have introduced are not in the script.
    taken = {name.value for statement in (*first, *second) for name in all_of(statement, cst.Name)}
    names: dict[str, str] = {}
    for name in other:
        if name in one and one[name] != other[name]:
            names[name] = tree.unused_name(name, taken)
            taken.add(names[name])

    class Rename(cst.CSTTransformer):
        def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.Attribute:
            return updated.with_changes(attr=original.attr)

        def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg:
            return updated.with_changes(keyword=original.keyword)

        def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.Name:
            return updated.with_changes(value=names.get(original.value, original.value))

    made = [statement.visit(Rename()) for statement in second]
    return [one for one in made if isinstance(one, cst.BaseStatement)]


# --- tiles that stay on the chip ---------------------------------------------------------------------------------------------


def _copy_of(statement: cst.CSTNode) -> tuple[cst.Call, cst.BaseExpression, cst.BaseExpression] | None:
    """Returns the call of a statement ``T.copy(source, target)``, and its arguments; None for any other statement."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        (only,) = statement.body
        if isinstance(only, cst.Expr) and isinstance(only.value, cst.Call) and called(only.value, "copy"):
            args = only.value.args
            if len(args) == 2 and all(arg.keyword is None for arg in args):
                return only.value, args[0].value, args[1].value
    return None


def _forwarded(body: Sequence[cst.BaseStatement], tree: ScriptTree) -> list[cst.BaseStatement]:
    """Returns a body in which tiles that are stored and loaded again from the same place are copied on the chip."""
    scratch = {name for name, text in _definitions(body, tree).items() if ".alloc_global(" in text}
    block = cst.IndentedBlock(list(body))
    uses: dict[str, int] = {}
    for name in all_of(block, cst.Name):
        uses[name.value] = uses.get(name.value, 0) + 1
    unused: set[str] = set()

    class Forward(cst.CSTTransformer):
        def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock:
            body = _without_round_trips(list(updated.body), scratch, uses, unused, tree)
            return updated.with_changes(body=_without_repeated_copies(body, tree))

    made = block.visit(Forward())
    assert isinstance(made, cst.IndentedBlock)
    return [one for one in made.body
            if not (_is_definition(one) and (names := set(_definitions([one], tree))) and names <= unused)]


def _without_round_trips(body: list[cst.BaseStatement], scratch: set[str], uses: Mapping[str, int], unused: set[str],
                         tree: ScriptTree) -> list[cst.BaseStatement]:
    made = list(body)
    for statement in body:
        store = _copy_of(statement)
        if store is None or not isinstance(store[2], cst.Subscript) or not isinstance(store[2].value, cst.Name):
            continue
        place, tensor = tree.code(store[2]), store[2].value.value
        at = next(index for index, one in enumerate(made) if one is statement)
        load = next((one for one in made[at + 1:] if (copy := _copy_of(one)) is not None and tree.code(copy[1]) == place), None)
        copy = None if load is None else _copy_of(load)
        if load is None or copy is None:
            continue
        call, _, target = copy
        source = store[1]
        if tree.code(source) == tree.code(target):
            made = [one for one in made if one is not load]
        else:
            new = call.with_changes(args=[call.args[0].with_changes(value=source), *call.args[1:]])
            made = [_with_call(one, new) if one is load else one for one in made]
        if tensor in scratch and uses[tensor] == 3:  # its allocation, this store and this load
            made = [one for one in made if one is not statement]
            unused.add(tensor)
    return made


def _with_call(statement: cst.BaseStatement, call: cst.Call) -> cst.BaseStatement:
    """Returns a statement that is one call with another call."""
    assert isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Expr)
    return statement.with_changes(body=[statement.body[0].with_changes(value=call)])


def _without_repeated_copies(body: Sequence[cst.BaseStatement], tree: ScriptTree) -> list[cst.BaseStatement]:
    """Returns a body without copies that an earlier statement has made already, if neither end has changed since."""
    made: list[cst.BaseStatement] = []
    for statement in body:
        copy = _copy_of(statement)
        text = _text(statement, tree)
        earlier = next((at for at in reversed(range(len(made))) if _text(made[at], tree) == text), None)
        if copy is not None and earlier is not None:
            ends = {name.value for end in copy[1:] for name in all_of(end, cst.Name)}
            if not any(ends & _written(one) for one in made[earlier + 1:]):
                continue
        made.append(statement)
    return made


def _written(statement: cst.CSTNode) -> set[str]:
    """Returns the names that a statement possibly changes: assigned variables and buffers, the targets of copies, and all
    arguments of other calls that are statements.
    """
    targets: list[cst.CSTNode] = [target.target for one in all_of(statement, cst.Assign) for target in one.targets]
    targets += [one.target for one in all_of(statement, cst.AugAssign)] + [one.target for one in all_of(statement, cst.For)]
    for line in all_of(statement, cst.SimpleStatementLine):
        copy = _copy_of(line)
        targets += [copy[2]] if copy is not None else [name for one in all_of(line, cst.Expr) for name in all_of(one, cst.Name)]
    bases = [target.value if isinstance(target, cst.Subscript) else target for target in targets]
    return {name.value for base in bases for name in all_of(base, cst.Name)}
