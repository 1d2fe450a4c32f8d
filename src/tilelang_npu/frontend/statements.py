"""Traces the statements of a kernel: assignments, loops, branches, ``with`` blocks and macros."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from xdsl.dialects import scf
from xdsl.ir import Block, Region

from tilelang_npu.dispatch import assigned_references
from tilelang_npu.errors import Location, TileError, shown
from tilelang_npu.frontend import kernels
from tilelang_npu.frontend.expressions import OPERATORS, GuardedTest, host_failure, is_traced
from tilelang_npu.frontend.loops import FOR, WHILE, Loops
from tilelang_npu.frontend.scopes import Scopes, lasting
from tilelang_npu.language import launch
from tilelang_npu.language.threads import ThreadGuard
from tilelang_npu.traced import jumps, source
from tilelang_npu.traced.active_trace import Inlined
from tilelang_npu.traced.arithmetic import truth as traced_truth
from tilelang_npu.traced.author import follows_kernels
from tilelang_npu.traced.buffers import Addressable, Buffer, Element, Variable
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.registers import RegisterPlace, RegisterVariable
from tilelang_npu.traced.scalars import Expr

follows_kernels(__file__)

MACRO_DEPTH = 100
"""The depth of nested macro calls that is treated as an endless recursion."""
_IN_MACRO = "in the macro "
_TOLD = 4
"""The largest number of macro calls around an error that a message lists."""
IF, WITH = "`if` body", "`with` body"

_KEYWORDS: dict[type[ast.AST], str] = {
    ast.FunctionDef: "def", ast.AsyncFunctionDef: "async def", ast.ClassDef: "class", ast.Delete: "del",
    ast.AnnAssign: "name: type = value", ast.AsyncFor: "async for", ast.AsyncWith: "async with", ast.Try: "try",
    ast.Import: "import", ast.ImportFrom: "from ... import", ast.Global: "global", ast.Nonlocal: "nonlocal",
    ast.Match: "match",
}
_INSTEAD: dict[type[ast.AST], str] = {
    ast.FunctionDef: "define it outside the kernel as a @T.macro",
    ast.AnnAssign: "drop the annotation; T.cast or T.float32(...) gives a value a type",
    ast.Delete: "leave it out: a buffer's memory is free after its last use",
    ast.Match: "write if and elif", ast.Try: "the device raises no exceptions: test the condition with if",
    ast.Import: "import it at the head of the file", ast.ImportFrom: "import it at the head of the file",
    ast.Global: "bind another name, or make it a parameter of the factory",
    ast.Nonlocal: "bind another name, or make it a parameter of the factory",
    ast.Return: "a kernel writes its results to its tensors; only a macro may return a value: out_idx of jit names the "
                "tensors that a call returns, and an `if` around the rest replaces an early return",
}


_BLOCKS: dict[type[ast.AST], str] = {ast.For: "for", ast.While: "while", ast.With: "with"}


@dataclass
class _Branches:
    """A ``T.If`` that is being walked: its condition, and the regions of its branches."""

    test: bool | Expr
    regions: dict[type, Region | None] = field(default_factory=dict)


class Statements(Loops):
    """Traces the statements of one function: evaluates the expressions, emits operations and binds names.

    Attributes:
        depth: the number of nested macro calls in which the function is inlined.
        is_macro: whether the function is a macro, which may return a value.
    """

    depth = 0
    is_macro = False
    _open_if: _Branches | None = None
    _inner = ""  # the kind of the outermost block around the current statement that is no branch of a known condition
    _jumped: Sequence[int] = ()
    _result: object = None

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Traces the statements of a block."""
        loop = self.builder.loops[-1] if self.builder.loops else None
        seen = loop.count if loop is not None else 0
        for place, statement in enumerate(statements):
            self.statement(statement)
            if loop is not None and loop.count != seen:
                rest = statements[place + 1:]
                if rest:
                    jumps.walk_rest(self.builder, loop, partial(self.body, rest))
                return

    def function_body(self, statements: Sequence[ast.stmt]) -> object:
        """Traces the body of a function and returns the value that it returns; None if it returns none.

        A macro can return before its end in branches of ``if``. Statements after such a branch become its ``else`` part.

        Raises:
            TileError: T141, a macro returns a value after a jump out of an iteration of its caller's loop, or under a condition
                that is known at run time only; or an error of a statement.
        """
        *rest, last = statements
        if not self.is_macro and isinstance(last, ast.Return) and last.value is None:
            self.body(rest)
            self.builder.location = self.where(last)
            return None
        self._jumped = [loop.count for loop in self.builder.loops]
        self.body(without_early_returns(statements) if self.is_macro else statements)
        return self._result

    def _return(self, node: ast.Return) -> None:
        if not self.is_macro:
            raise TileError("statement `return` is not supported in a kernel", code="T141", help=_INSTEAD[ast.Return])
        if self._inner and not (node.value is None and self._inner == "if"):
            where = "under a condition that is known at run time only" if self._inner == "if" else f"in a `{self._inner}` block"
            raise TileError(f"a macro cannot return {'a value ' if node.value else ''}{where}", code="T141",
                            help="let it set a T.alloc_var scalar, and return that at its end" if node.value else
                            "put an `if` around the statements that are not to be executed")
        if node.value is None:
            return
        if self._jumped != [loop.count for loop in self.builder.loops]:
            raise TileError("a macro with break or continue for its caller's loop cannot return a value", code="T141",
                            help="let it set a T.alloc_var scalar that the caller tests")
        self._result = self.evaluate(node.value)

    def statement(self, node: ast.stmt) -> None:
        """Traces one statement; emitted operations and raised errors get the statement's position.

        Raises:
            TileError: T141, the statement is not supported in a kernel; T146, Python code of the author raised an exception; or
                an error of a part of the statement.
        """
        self.builder.location = self.where(node)
        handler = self.STATEMENTS.get(type(node))
        try:
            if handler is None:
                keyword = _KEYWORDS.get(type(node), type(node).__name__)
                raise TileError(f"statement `{keyword}` is not supported in a kernel", code="T141",
                                help=_INSTEAD.get(type(node), "do it in the factory, or in a plain Python helper"))
            with self._block(_BLOCKS.get(type(node), "")):
                handler(self, node)
        except TileError as error:
            error.at(self.where(node))
            raise
        if self.builder.counted is not None:
            self.builder.counted.close(self.builder.block, self.where(node))

    @contextmanager
    def _block(self, kind: str) -> Iterator[None]:
        """A context manager that states the kind of the block that is traced inside; an empty kind states none."""
        outer, self._inner = self._inner, self._inner or kind
        try:
            yield
        finally:
            self._inner = outer

    # --- plain statements ------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.Expr) -> None:
        self.evaluate(node.value)

    def _pass(self, node: ast.Pass) -> None:
        """Does nothing."""

    def _assert(self, node: ast.Assert) -> None:
        test = self.evaluate(node.test)
        if is_traced(test):
            raise TileError("statement `assert` on a traced value is not supported in a kernel", code="T141",
                            help="assert on sizes and types that the factory knows; T.print and T.printf print values of a run")
        if not test:
            said = f": {self.evaluate(node.msg)}" if node.msg is not None else ""
            raise TileError(f"assertion `{ast.unparse(node.test)}` failed{said}", code="T146",
                            help="check the sizes that the factory was called with")

    def _raise(self, node: ast.Raise) -> None:
        problem = self.evaluate(node.exc) if node.exc is not None else RuntimeError("raise")
        if isinstance(problem, type) and issubclass(problem, BaseException):
            problem = problem()
        if isinstance(problem, TileError):
            raise problem
        if not isinstance(problem, BaseException):
            raise TileError(f"`raise` takes an exception, not {problem!r}", code="T146",
                            help="raise an exception such as ValueError('...')")
        raise host_failure(problem, "the kernel raised")

    # --- assignments -----------------------------------------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self._assign_to(target, value, node)

    def _assign_to(self, target: ast.expr, value: object, node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, node)
        elif isinstance(target, ast.Subscript):
            self._place(target).store(value)
        else:
            what = "an attribute" if isinstance(target, ast.Attribute) else "a starred name"
            raise TileError(f"assignment to {what} is not supported in a kernel", code="T141",
                            help="bind a plain name").at(self.where(target))

    def _unpack(self, target: ast.Tuple | ast.List, value: object, node: ast.stmt) -> None:
        if is_traced(value) or not hasattr(value, "__iter__"):
            raise TileError(f"cannot unpack {shown(value)} into {len(target.elts)} names", code="T146",
                            help="bind it to one name").at(self.where(target))
        parts = list(value)
        if len(parts) != len(target.elts):
            raise TileError(f"{len(parts)} values for {len(target.elts)} names", code="T146",
                            help="match the names to the values").at(self.where(target))
        for name, part in zip(target.elts, parts, strict=True):
            self._assign_to(name, part, node)

    def _assign_name(self, target: ast.Name, value: object, node: ast.stmt) -> None:
        binding = self.scopes.binding(target.id)
        if binding is not None and isinstance(binding.value, RegisterVariable) and not binding.value.shape and not isinstance(
                value, RegisterVariable):
            binding.value.place.store(value)
            return
        fresh = isinstance(value, Buffer) and value.unnamed
        if binding is not None and isinstance(binding.value, Variable) and not fresh:
            if isinstance(value, (Addressable, str, tuple, list, dict)) or value is None:
                raise TileError(f"{target.id} is a T.alloc_var scalar; {shown(value)} is not a scalar", code="T141",
                                help="assign a number or a computed scalar, or use another name for the buffer")
            binding.value.place.store(value)
            return
        self._assign_anew(target, self._read(value), node)

    def _assign_anew(self, target: ast.Name, value: object, node: ast.stmt) -> None:
        """Binds a name to another value.

        In each iteration a loop variable or a block id has its own value, whatever its name meant in the iteration before: this
        is remarked.

        Raises:
            TileError: T142, the value would have to outlive the block.
        """
        name, binding = target.id, self.scopes.binding(target.id)
        block = self.scopes.carried(name)
        if isinstance(node, ast.AugAssign) and block is None:
            block = self.scopes.encloses(name, (FOR, WHILE, IF))
        if block is not None and (binding is None or binding.value is not value):
            bound = f"bound at {binding.location}" if binding is not None else "a name"
            if binding is None or binding.assigned or isinstance(node, ast.AugAssign):
                raise TileError(f"{name!r} is {bound}, outside this {block.kind}; its update would be lost at the block's end",
                                code="T142", location=self.where(node), help=lasting(name, value))
            self.builder.remark(TileError(
                f"{name!r} is bound anew in the {block.kind}; the next iteration reads the value {bound}", code="T142",
                location=self.where(node), help=lasting(name, value)))
        self.bind(name, value, self.where(target), assigned=True)

    def bind(self, name: str, value: object, location: Location, *, assigned: bool = False) -> None:
        """Binds a name to a value; a new buffer and an unnamed value of the IR are named after it.

        Args:
            name: the name.
            value: the value.
            location: the position in the source.
            assigned: whether an assignment or a parameter binds the name; False for loop variables and block ids.
        """
        if isinstance(value, Buffer) and value.unnamed:
            value.rename(name, location)
        elif isinstance(value, (list, tuple)):
            for position, item in enumerate(value):
                if isinstance(item, Buffer) and item.unnamed:
                    item.rename(f"{name}_{position}", location)
        elif isinstance(value, Expr):
            value.suggest_name(name)
        self.scopes.bind(name, value, location, assigned=assigned)

    def _read(self, value: object) -> object:
        """Reads an element that is bound to a name; the value remembers the element."""
        if isinstance(value, Element):
            loaded = value.load()
            loaded.origin = value
            return loaded
        if isinstance(value, RegisterPlace):
            return value.load()
        if isinstance(value, (tuple, list)) and type(value) in (tuple, list) and any(
                isinstance(item, Element) for item in value):
            return type(value)(self._read(item) for item in value)
        return value

    def _place(self, target: ast.Subscript) -> Element | RegisterPlace:
        """The element, or the register, that a subscript on the left side of an assignment names."""
        base = self.evaluate(target.value)
        if isinstance(base, RegisterVariable):
            register = self.evaluate(target)
            assert isinstance(register, RegisterPlace)
            return register
        if not isinstance(base, Addressable) and not (isinstance(base, Element) and isinstance(base.buffer, Variable)):
            text = base.describe() if isinstance(base, Element) else f"a {type(base).__name__}"
            raise TileError(f"assignment to an item of {text} is not supported in a kernel", code="T141",
                            help="only elements of buffers change while a kernel runs").at(self.where(target))
        place = self.evaluate(target)
        if not isinstance(place, Element):
            raise TileError(f"assignment to the slice {shown(place)} is not supported", code="T141",
                            help="T.fill writes one value to it, T.copy another buffer's elements, T.Parallel single elements",
                            ).at(self.where(target))
        return place

    def _augmented(self, node: ast.AugAssign) -> None:
        name = OPERATORS.get(type(node.op))
        if name is None:
            raise TileError("operator `@=` is not supported in a kernel", code="T141", help="use T.gemm or T.gemm_v0")
        if isinstance(node.target, ast.Subscript):
            place = self._place(node.target)
            place.store(self.combine(name, place, self.evaluate(node.value), node))
            return
        if not isinstance(node.target, ast.Name):
            raise TileError("assignment to an attribute is not supported in a kernel", code="T141",
                            help="bind a name, or store to an element of a buffer")
        target = node.target.id
        current = self.scopes.lookup(target)
        value = self.evaluate(node.value)
        if isinstance(current, Variable):
            current.place.store(self.combine(name, current.place, value, node))
            return
        self._assign_anew(node.target, self._read(self.combine(name, current, value, node)), node)

    # --- branches and frames ---------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> None:
        value = self.evaluate(node.test)
        if isinstance(value, (ThreadGuard, GuardedTest)):
            guard, rest = (value, []) if isinstance(value, ThreadGuard) else (value.guard, value.rest)
            self._thread_guard(node, guard, rest)
            return
        test = self.truth(value)
        if isinstance(test, bool):  # the branch is known: its names belong to the enclosing block
            self.body(node.body if test else node.orelse)
            return
        builder, location = self.builder, self.builder.location
        condition = traced_truth(builder, test).ssa(builder)
        with self.scopes.alternatives():
            chosen = self._branch(node.body, location)
            other = self._branch(node.orelse, location) if node.orelse else None
        builder.emit(scf.IfOp(condition, [], chosen, other), location)

    def _thread_guard(self, node: ast.If, guard: ThreadGuard, rest: Sequence[ast.expr]) -> None:
        """Traces an ``if`` for some of the threads of a GPU's block: each branch that some thread takes, once.

        Args:
            node: the statement.
            guard: the condition, or its first part.
            rest: the other parts of a condition with ``and``.

        Raises:
            TileError: T190, a condition with ``and`` has an ``else`` part, or several threads add to an element.
        """
        if rest and node.orelse:
            raise TileError("a condition on the index of a thread and another one has an `else` part", code="T190",
                            help="put the other condition into an `if` of its own, inside of that of the thread")
        branches = [(guard.chosen, node.body), (guard.others, node.orelse)]
        if rest:
            inner = rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), list(rest))
            branches[0] = (guard.chosen, [ast.copy_location(ast.If(ast.copy_location(inner, rest[0]), node.body, []), node)])
        for threads, statements in branches:
            if threads:
                outer, self.builder.repeats = self.builder.repeats, threads
                try:
                    self.body(statements)
                finally:
                    self.builder.repeats = outer

    def _branch(self, statements: Sequence[ast.stmt], location: Location) -> Region:
        block = Block()
        with self.builder.at(block):
            with self.scopes.frame(IF, alternative=True), self._block("if"):
                self.body(statements)
            self.builder.emit(scf.YieldOp(), location)
        return region_of(block)

    def _with(self, node: ast.With) -> None:
        self._enter(node, list(node.items))

    def _enter(self, node: ast.With, items: list[ast.withitem]) -> None:
        if not items:
            self.body(node.body)
            return
        item = items.pop(0)
        frame = self.evaluate(item.context_expr)
        location = self.where(item.context_expr)
        if isinstance(frame, (launch.If, launch.Then, launch.Else)):
            if item.optional_vars is not None:
                raise TileError(f"`with T.{type(frame).__name__}` yields nothing to name", code="T150",
                                help="drop the `as`").at(location)
            self.builder.location = location
            if isinstance(frame, launch.If):
                self._if_frame(node, items, frame, location)
            else:
                self._branch_frame(node, items, frame, location)
            return
        opened = kernels.FRAMES.get(type(frame))
        if opened is None:
            raise TileError(f"`with` over a {type(frame).__name__} is not supported in a kernel", code="T141",
                            help="the frames are T.Kernel, T.Scope, T.rs and T.If").at(location)
        self.builder.location = location
        kind = "T.Kernel body" if isinstance(frame, launch.Kernel) else WITH
        try:
            with opened(self.builder, frame, _target_names(item.optional_vars)) as values, self.scopes.frame(kind):
                if item.optional_vars is not None:
                    self._bind_frame(item.optional_vars, values)
                self._enter(node, items)
        except TileError as error:
            error.at(location)
            raise

    def _if_frame(self, node: ast.With, items: list[ast.withitem], frame: launch.If, location: Location) -> None:
        """``T.If``, whose body consists of its branches."""
        for statement in node.body if not items else ():
            if not isinstance(statement, (ast.With, ast.Pass)):
                raise TileError("`with T.If` may contain only `with T.Then()` and `with T.Else()`", code="T141",
                                help="put the statement into one of them").at(self.where(statement))
        opened = _Branches(self.truth(frame.condition))
        outer, self._open_if = self._open_if, opened
        try:
            with self.scopes.alternatives():
                if items:
                    self._enter(node, items)
                else:
                    for statement in node.body:
                        self.statement(statement)
        finally:
            self._open_if = outer
        if launch.Then not in opened.regions:
            raise TileError("`with T.If` has no `with T.Then()`", code="T141", help="put one inside it").at(location)
        if isinstance(opened.test, bool):
            return
        self.builder.location = location
        condition = traced_truth(self.builder, opened.test).ssa(self.builder)
        chosen, other = opened.regions[launch.Then], opened.regions.get(launch.Else)
        assert chosen is not None
        self.builder.emit(scf.IfOp(condition, [], chosen, other), location)

    def _branch_frame(self, node: ast.With, items: list[ast.withitem], frame: launch.Then | launch.Else,
                      location: Location) -> None:
        opened, kind = self._open_if, type(frame)
        if opened is None or kind in opened.regions:
            why = "is outside of `with T.If`" if opened is None else "occurs twice in one `with T.If`"
            raise TileError(f"`with T.{kind.__name__}` {why}", code="T141",
                            help="write `with T.If(condition):` with one T.Then, and at most one T.Else, inside").at(location)
        self._open_if = None
        region: Region | None = None
        try:
            if isinstance(opened.test, bool):
                if opened.test is (kind is launch.Then):
                    self._enter(node, items)
            else:
                block = Block()
                with self.builder.at(block):
                    with self.scopes.frame(IF, alternative=True):
                        self._enter(node, items)
                    self.builder.emit(scf.YieldOp(), location)
                region = region_of(block)
        finally:
            self._open_if = opened
        opened.regions[kind] = region

    def _bind_frame(self, target: ast.expr, values: Sequence[object]) -> None:
        names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        given = values if len(names) > 1 or len(values) == 1 else [tuple(values)]
        for name, value in zip(names, given, strict=False):
            assert isinstance(name, ast.Name)
            self.scopes.bind(name.id, value, self.where(name))

    # --- macros ----------------------------------------------------------------------------------------------------------

    def inline(self, macro: Inlined, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Traces the statements of a macro, with its parameters bound to the arguments, and returns the macro's result.

        Raises:
            TileError: T141, the macro calls itself endlessly; T145, the arguments do not match the macro's parameters; or an
                error of a statement of the macro.
        """
        name = macro.function.__name__
        called = self.builder.location
        if self.depth >= MACRO_DEPTH:
            raise TileError(f"macro {name!r} calls itself without an end", code="T141", location=called,
                            help="a macro is inlined, so a recursion must end while the kernel is compiled")
        found = source.find(macro.function)
        try:
            bound = inspect.signature(macro.function).bind(*arguments, **keywords)
        except TypeError as wrong:
            raise TileError(f"macro {name}: {wrong}", code="T145", location=called,
                            help="match the macro's parameters") from None
        bound.apply_defaults()
        walker = Statements(self.builder, found, Scopes(macro.function, "macro", None if macro.hygienic else self.scopes))
        walker.depth, walker.is_macro = self.depth + 1, True
        walker.callers = (replace(called, callers=()), *self.callers)
        written = assigned_references(macro.function)
        for parameter, value in bound.arguments.items():
            if parameter in written and not (isinstance(value, Element) and isinstance(value.buffer, Variable)):
                raise TileError(f"macro {name!r} assigns {parameter}, a T.Ref, and {shown(value)} is no variable", code="T145",
                                location=called, help="pass a T.alloc_var, or the buffer and the index")
            passed = value.buffer if isinstance(value, Element) and isinstance(value.buffer, Variable) else value
            walker.bind(parameter, passed, called, assigned=True)
        outer, self.builder.walk = self.builder.walk, walker.inline
        try:
            return walker.function_body(found.node.body)
        except TileError as error:
            error.notes = (*error.notes, f"{_IN_MACRO}{name!r}, called at {called}")
            if self.depth == 0:
                error.notes = _shortened(error.notes)
            raise
        finally:
            self.builder.location, self.builder.walk = called, outer

    STATEMENTS: ClassVar[dict[type[ast.AST], Callable[..., None]]] = {
        ast.Expr: _expression, ast.Pass: _pass, ast.Assert: _assert, ast.Raise: _raise, ast.Assign: _assign,
        ast.AugAssign: _augmented, ast.For: Loops._for, ast.While: Loops._while, ast.If: _if, ast.With: _with,
        ast.Break: Loops._break, ast.Continue: Loops._continue, ast.Return: _return,
    }


def without_early_returns(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Returns the statements of a macro such that each ``return`` in a branch is the last statement that is executed.

    The statements after an ``if`` with such a branch are moved to the end of both its branches; those after a ``return`` are
    removed. A ``return`` in a loop or a ``with`` block stays where it is.
    """
    for place, statement in enumerate(statements):
        if isinstance(statement, ast.Return):
            return list(statements[: place + 1])
        if isinstance(statement, ast.If) and _returns([*statement.body, *statement.orelse]):
            rest = statements[place + 1:]
            branches = [without_early_returns([*branch, *rest]) for branch in (statement.body, statement.orelse)]
            return [*statements[:place], ast.copy_location(ast.If(statement.test, *branches), statement)]
    return list(statements)


def _returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether a ``return`` is among the statements, or in a branch of an ``if`` among them."""
    return any(isinstance(one, ast.Return) or (isinstance(one, ast.If) and _returns([*one.body, *one.orelse]))
               for one in statements)


def _shortened(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes without the middle of a long chain of macros."""
    chain = [note for note in notes if note.startswith(_IN_MACRO)]
    if len(chain) <= _TOLD:
        return tuple(notes)
    others = [note for note in notes if not note.startswith(_IN_MACRO)]
    return (*others, *chain[:_TOLD - 2], f"... {len(chain) - _TOLD + 1} more macros, each called in the next ...", chain[-1])


def _target_names(target: ast.expr | None) -> list[str] | None:
    if target is None:
        return None
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if not all(isinstance(name, ast.Name) for name in names):
        raise TileError("`with ... as` takes names", code="T141", help="write `as (cid, vid)`")
    return [name.id for name in names if isinstance(name, ast.Name)]
