"""Writes edits of a kernel as changes of the author's source file.

``kernel.explain()`` and ``kernel.profile()`` try edits of a kernel's trace (``kernel_edits.py``). The functions of this module
write such an edit as changes of the author's file. A function returns no change if the edit cannot be written there: for
example, if a number comes from an expression, or if a loop is not a call of the language.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from tilelang_npu.dialects.ir.changes import InFront, OwnBuffer, Rounds, Unpinned
from tilelang_npu.errors import Location
from tilelang_npu.runtime.settings.jit_settings import MadeBy
from tilelang_npu.sharing import parse_python
from tilelang_npu.source_changes import SourceChange

_Node = TypeVar("_Node", bound=ast.AST)


# -- files ---------------------------------------------------------------------------------------------------------------------


class _SourceFile:
    """A source file with its syntax tree.

    Args:
        path: the path of the file.

    Raises:
        SyntaxError: the file cannot be read as Python source, for example because it is no file.
    """

    def __init__(self, path: str) -> None:
        linecache.checkcache(path)
        self.path = path
        self.lines = [line.rstrip("\n") for line in linecache.getlines(path)]
        if not self.lines:
            msg = f"{path} cannot be read"
            raise SyntaxError(msg)
        self.tree = parse_python("\n".join(self.lines))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The parent of each node of the syntax tree."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def all(self, kind: type[_Node], line: int | None = None) -> list[_Node]:
        """Returns the nodes of a kind; if a line is given, those that begin there."""
        return [node for node in ast.walk(self.tree) if isinstance(node, kind) and line in (None, getattr(node, "lineno", 0))]

    def text(self, node: ast.AST) -> str:
        """Returns the source of a node."""
        return ast.get_source_segment("\n".join(self.lines), node) or ""

    def statement(self, line: int) -> ast.stmt | None:
        """Returns the simple statement that covers a line; None if there is not exactly one."""
        found = [node for node in self.all(ast.stmt)
                 if node.lineno <= line <= (node.end_lineno or 0) and not hasattr(node, "body")]
        return found[0] if len(found) == 1 else None

    def replaced(self, parts: Mapping[ast.expr, str]) -> tuple[SourceChange, ...]:
        """Returns the changes that replace expressions by other texts.

        Args:
            parts: the new text of each expression. No expression contains another one.
        """
        edited: dict[int, str] = {}
        ends: dict[int, int] = {}
        for node in sorted(parts, key=lambda node: (node.lineno, node.col_offset), reverse=True):
            first, last = node.lineno, node.end_lineno or node.lineno
            head = self.lines[first - 1].encode()[:node.col_offset].decode()
            tail = edited.get(last, self.lines[last - 1])
            tail = tail.encode()[node.end_col_offset:].decode()
            if last > first:
                edited.pop(last, None)
            edited[first] = head + parts[node] + tail
            ends[first] = max(last, ends.get(last, last), ends.get(first, first))
        return tuple(SourceChange(self.path, first, tuple(self.lines[first - 1:ends[first]]), (edited[first],))
                     for first in sorted(edited))

    def moved(self, first: int, last: int, after: Sequence[str]) -> SourceChange:
        """Returns the change that replaces whole lines.

        Args:
            first, last: the first and the last of the lines, from 1.
            after: the lines in their place.
        """
        return SourceChange(self.path, first, tuple(self.lines[first - 1:last]), tuple(after))

    def has_long_strings(self, node: ast.AST) -> bool:
        """Whether a node contains a string of several lines, which must not be indented."""
        return any(isinstance(part, (ast.Constant, ast.JoinedStr)) and part.lineno != part.end_lineno
                   for part in ast.walk(node))


def _read(path: str | None) -> _SourceFile | None:
    if path is None:
        return None
    try:
        return _SourceFile(path)
    except (SyntaxError, tokenize.TokenError, ValueError):
        return None


def _last_name(node: ast.AST) -> str:
    """Returns ``copy`` for ``T.copy`` and for ``copy``; an empty string for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _calls(node: ast.AST, *names: str) -> list[ast.Call]:
    return [part for part in ast.walk(node) if isinstance(part, ast.Call) and _last_name(part.func) in names]


def _language(file: _SourceFile) -> str | None:
    """Returns the name of the language's module in a file, from a call of ``NAME.Kernel``."""
    return next((file.text(call.func.value) for call in _calls(file.tree, "Kernel") if isinstance(call.func, ast.Attribute)),
                None)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


# -- loops ---------------------------------------------------------------------------------------------------------------------


def change_stages(loop: Location | None, stages: int) -> tuple[SourceChange, ...]:
    """Returns the change that sets ``num_stages`` of a loop; a serial loop becomes ``T.Pipelined``.

    Args:
        loop: the line of the loop.
        stages: the number of stages.
    """
    file = _read(loop.file if loop is not None else None)
    found = file.all(ast.For, loop.line) if file is not None and loop is not None else []
    if file is None or len(found) != 1 or not isinstance(call := found[0].iter, ast.Call):
        return ()
    given = next((keyword for keyword in call.keywords if keyword.arg == "num_stages"), None)
    if given is not None:
        return file.replaced({given.value: str(stages)})
    language, kind = _language(file), _last_name(call.func)
    can_change = kind == "Pipelined" or (kind in ("serial", "range") and not call.keywords)
    if language is None or not can_change or len(call.args) not in (1, 2):
        return ()
    arguments = ", ".join(file.text(part) for part in (*call.args, *call.keywords))
    return file.replaced({call: f"{language}.Pipelined({arguments}, num_stages={stages})"})


def hoist_load(change: InFront) -> tuple[SourceChange, ...]:
    """Returns the changes that move a load before a loop, if no statement of the loop computes an operand of the load."""
    load, loop = change.load, change.loop
    file = _read(load.file if load is not None else None)
    if file is None or load is None or loop is None or load.file != loop.file:
        return ()
    statement, loops = file.statement(load.line), file.all(ast.For, loop.line)
    if not isinstance(statement, ast.Expr) or len(loops) != 1 or statement not in ast.walk(loops[0]):
        return ()
    assigned = {part.id for part in ast.walk(loops[0]) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    last = statement.end_lineno or statement.lineno
    if _names(statement) & assigned or file.has_long_strings(statement) or not _is_alone(file, statement):
        return ()
    indent = " " * (statement.col_offset - loops[0].col_offset)
    moved = [line.removeprefix(indent) for line in file.lines[statement.lineno - 1:last]]
    return (SourceChange(file.path, loops[0].lineno, (), tuple(moved)),
            file.moved(statement.lineno, last, _filled(file, statement)))


def _is_alone(file: _SourceFile, statement: ast.stmt) -> bool:
    """Whether no other statement is on the lines of a statement."""
    lines = range(statement.lineno, (statement.end_lineno or 0) + 1)
    others = [node for node in file.all(ast.stmt) if node is not statement and not hasattr(node, "body")]
    return not any(node.lineno in lines or node.end_lineno in lines for node in others)


def _filled(file: _SourceFile, statement: ast.stmt) -> tuple[str, ...]:
    """Returns the lines in place of a statement that is removed: ``pass`` if its block would be empty."""
    parent = file.parents[statement]
    blocks = [block for name in ("body", "orelse", "finalbody") if isinstance(block := getattr(parent, name, None), list)]
    only = any(block == [statement] for block in blocks)
    return (" " * statement.col_offset + "pass",) if only else ()


# -- numbers -------------------------------------------------------------------------------------------------------------------


def change_number(made_by: MadeBy | None, name: str, old: int, new: int) -> tuple[SourceChange, ...]:
    """Returns the change that gives another number to the factory of a kernel: where the factory's call passes it as a literal
    or by a variable that is used only for this, or in the default of the parameter.

    Args:
        made_by: the call of the factory.
        name: the parameter of the factory.
        old: the number of the call.
        new: the number to pass.
    """
    if made_by is None:
        return ()
    function = inspect.unwrap(made_by.function)
    try:
        passed = made_by.arguments(defaults=False)
    except (TypeError, ValueError):
        return ()
    if name in passed:
        return _change_argument(made_by, function, name, old, new)
    code = getattr(function, "__code__", None)
    file = _read(code.co_filename) if code is not None else None
    if code is None or file is None:
        return ()
    definitions = [node for node in file.all(ast.FunctionDef)
                   if node.name == function.__name__ and code.co_firstlineno in (node.lineno, *(
                       part.lineno for part in node.decorator_list))]
    for definition in definitions:
        parameters = definition.args
        positional = [*parameters.posonlyargs, *parameters.args]
        pairs = [*zip(positional[len(positional) - len(parameters.defaults):], parameters.defaults, strict=True),
                 *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)]
        for parameter, default in pairs:
            if parameter.arg == name and _is_number(default, old):
                assert default is not None
                return file.replaced({default: str(new)})
    return ()


def _change_argument(made_by: MadeBy, function: Callable[..., object], name: str, old: int, new: int
                     ) -> tuple[SourceChange, ...]:
    file = _read(made_by.at.file if made_by.at is not None else None)
    if file is None or made_by.at is None:
        return ()
    called = getattr(function, "__name__", "")
    calls = [call for call in _calls(file.tree, called, "compile")  # also factory.compile(...)
             if call.lineno <= made_by.at.line <= (call.end_lineno or 0) and (_last_name(call.func) == called or (
                 isinstance(call.func, ast.Attribute) and _last_name(call.func.value) == called))]
    if len(calls) > 1 and made_by.at.column:  # several calls on a line
        calls = [call for call in calls if len(file.lines[call.lineno - 1].encode()[:call.col_offset].decode()) + 1
                 == made_by.at.column]
    if len(calls) != 1 or any(isinstance(part, ast.Starred) for part in calls[0].args):
        return ()
    by_name: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in calls[0].keywords}
    by_name |= dict(zip(inspect.signature(function).parameters, calls[0].args, strict=False))
    value = by_name.get(name)
    if _is_number(value, old):
        assert value is not None
        return file.replaced({value: str(new)})
    if not isinstance(value, ast.Name):
        return ()
    uses = [part for part in file.all(ast.Name) if part.id == value.id]
    assignments = [part for part in file.all(ast.Assign) if len(part.targets) == 1 and part.targets[0] in uses]
    if len(uses) == 2 and len(assignments) == 1 and _is_number(assignments[0].value, old):
        return file.replaced({assignments[0].value: str(new)})
    return ()


def _is_number(node: ast.AST | None, number: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == number


# -- statements and buffers ----------------------------------------------------------------------------------------------------


def remove_statements(places: Sequence[Location | None]) -> tuple[SourceChange, ...]:
    """Returns the changes that remove statements, or no change if one of them cannot be removed.

    Args:
        places: the lines of the statements, in one file.
    """
    known = [place for place in places if place is not None]
    file = _read(known[0].file if known else None)
    if file is None or len(known) < len(places) or any(place.file != file.path for place in known):
        return ()
    found = []
    for line in sorted({place.line for place in known}):
        statement = file.statement(line)
        if not isinstance(statement, ast.Expr) or not _is_alone(file, statement):
            return ()
        found.append(file.moved(statement.lineno, statement.end_lineno or line, _filled(file, statement)))
    return tuple(found)


def add_own_buffer(change: OwnBuffer) -> tuple[SourceChange, ...]:
    """Returns the changes that make a copy of a buffer's allocation, and use the copy from a line on."""
    place, at = change.place, change.at
    file = _read(place.file if place is not None else None)
    if file is None or place is None or at is None or at.file != place.file:
        return ()
    allocation = file.statement(place.line)
    if not isinstance(allocation, ast.Assign) or [_last_name(target) for target in allocation.targets] != [change.label]:
        return ()
    function = next((node for node in _around(file, allocation) if isinstance(node, ast.FunctionDef)), None)
    first = file.statement(at.line)
    if function is None or first is None or not _is_alone(file, allocation):
        return ()
    taken = {part.id for part in file.all(ast.Name)}
    name = next(one for one in (f"{change.label}_{number}" for number in range(2, 100)) if one not in taken)
    renamed = [part for part in ast.walk(function)
               if isinstance(part, ast.Name) and part.id == change.label and part.lineno >= first.lineno]
    if not renamed or sum(part in ast.walk(first) for part in renamed) != 1:
        return ()  # the first statement reads the buffer too
    lines = file.lines[allocation.lineno - 1:allocation.end_lineno]
    own = [lines[0].replace(change.label, name, 1), *lines[1:]]
    return (SourceChange(file.path, (allocation.end_lineno or 0) + 1, (), tuple(own)),
            *file.replaced(dict.fromkeys(renamed, name)))


def _around(file: _SourceFile, node: ast.AST) -> Iterator[ast.AST]:
    while node in file.parents:
        node = file.parents[node]
        yield node


def remove_address(change: Unpinned) -> tuple[SourceChange, ...]:
    """Returns the change that removes the address of a buffer from ``T.annotate_address``."""
    place = change.place
    file = _read(place.file if place is not None else None)
    allocation = file.statement(place.line) if file is not None and place is not None else None
    if file is None or not isinstance(allocation, ast.Assign) or len(allocation.targets) != 1:
        return ()
    label = _last_name(allocation.targets[0])
    for call in _calls(file.tree, "annotate_address"):
        table = call.args[0] if call.args else None
        if isinstance(table, ast.Dict) and label in map(_last_name, filter(None, table.keys)):
            kept = [f"{file.text(key)}: {file.text(value)}" for key, value in zip(table.keys, table.values, strict=True)
                    if key is not None and _last_name(key) != label]
            return file.replaced({table: "{" + ", ".join(kept) + "}"})
    return ()


def remove_from_list(at: Location | None, name: str) -> tuple[SourceChange, ...]:
    """Returns the change that removes a text from the only list of a file that has it, such as the value of ``tl.disable``.

    Args:
        at: a place in the file.
        name: the text.
    """
    file = _read(at.file if at is not None else None)
    lists = [part for part in file.all(ast.List) if any(_is_text(one, name) for one in part.elts)] if file is not None else []
    if file is None or len(lists) != 1:
        return ()
    kept = [file.text(one) for one in lists[0].elts if not _is_text(one, name)]
    return file.replaced({lists[0]: f"[{', '.join(kept)}]"})


def _is_text(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


# -- launches ------------------------------------------------------------------------------------------------------------------


def add_persistent_loop(change: Rounds) -> tuple[SourceChange, ...]:
    """Returns the change that launches fewer blocks, each with a ``T.Persistent`` loop over its share of the grid."""
    inside = change.line
    file = _read(inside.file if inside is not None else None)
    if file is None or inside is None:
        return ()
    launches = [node for node in file.all(ast.With) if node.lineno < inside.line <= (node.end_lineno or 0)
                and len(node.items) == 1 and _calls(node.items[0].context_expr, "Kernel")]
    if len(launches) != 1 or file.has_long_strings(launches[0]):
        return ()
    launch, item = launches[0], launches[0].items[0]
    call, target, language = item.context_expr, item.optional_vars, _language(file)
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    body, count = launch.body, len(call.args) if isinstance(call, ast.Call) else 0
    if not isinstance(call, ast.Call) or language is None or not count or len(names) < count or not all(
            isinstance(name, ast.Name) for name in names) or _calls(launch, "Persistent", "Scope", "use_swizzle"):
        return ()
    first = next((place for place, statement in enumerate(body) if not _is_allocation(statement)), len(body))
    later = [statement for statement in body[first:] if _is_allocation(statement)]
    if first == len(body) or not _can_move_up(later, launch) or any(
            _is_allocation(part) for statement in body[first:] if statement not in later for part in ast.walk(statement)):
        return ()
    taken = {part.id for part in file.all(ast.Name)}
    core = next(name for name in ("core", *(f"core_{number}" for number in range(2, 100))) if name not in taken)
    texts = [file.text(name) for name in names if name is not None]
    axes, others = texts[:count], texts[count:]
    keywords = "".join(f", {file.text(keyword)}" for keyword in call.keywords)
    head, begin = " " * launch.col_offset, body[first].lineno
    inner = " " * body[0].col_offset
    opening = f"{head}with {file.text(call.func)}({change.blocks}{keywords}) as " + (
        f"({', '.join([core, *others])})" if others else core) + ":"
    domain = ", ".join(file.text(size) for size in call.args)
    over = f"{inner}for {', '.join(axes)} in {language}.Persistent([{domain}], {change.blocks}, {core}):"
    between = file.lines[body[0].lineno - 1:begin - 1] if first else []
    moved = {number for one in later for number in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    rows = list(enumerate(file.lines[begin - 1:launch.end_lineno], begin))
    between = [*between, *(line for number, line in rows if number in moved)]
    rest = [f"    {line}" if line.strip() else line for number, line in rows if number not in moved]
    return (file.moved(launch.lineno, launch.end_lineno or begin, [opening, *between, over, *rest]),)


def _can_move_up(allocations: Sequence[ast.stmt], launch: ast.With) -> bool:
    """Whether allocations can be the first statements of a launch: they stand alone on their lines and read no variable that
    the launch sets."""
    set_here = {part.id for part in ast.walk(launch) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    lines = [number for one in launch.body for number in range(one.lineno, (one.end_lineno or one.lineno) + 1)]
    stand_alone = all(lines.count(number) == 1 for one in allocations for number in (one.lineno, one.end_lineno or one.lineno))
    return stand_alone and not any(isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in set_here
                                   for one in allocations for part in ast.walk(one))


def _is_allocation(node: ast.AST) -> bool:
    """Whether a statement only allocates a buffer."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _last_name(node.value.func).startswith("alloc")
