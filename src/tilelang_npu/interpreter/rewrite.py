"""Rewrites the syntax tree of a kernel so that Python can execute it.

Line numbers, names and expressions remain those of the author, so that a debugger shows the author's code. The following
constructs are rewritten, because they have another meaning in the language than in Python (``K`` is short for the name
``__kernel__``):

=====================================  ===============================================================================
``with T.Kernel(...) as (c, v): ...``  ``for b in K.blocks(T.Kernel(...), 2, True, True):`` around ``with b as (c, v): ...``
``for i in LOOP: ...``                 ``for i in K.loop(LOOP): ...``
``for i in T.Parallel(n): ...``        ``for p in K.parallel(T.Parallel(n), True):`` around ``with p as i: ...``
``while TEST: ...``                    ``for w in K.endless():`` around ``if not TEST: break`` and ``...``
``with T.Scope("C"): ...``             ``with K.frame(T.Scope("C")) as f:`` around ``if f: ...``; also ``T.Then``, ``T.SimdVF``
``x = VALUE``, ``x += VALUE``          ``x = K.assign("x", locals().get("x"), VALUE)``: a ``T.alloc_var`` is written
``a if TEST else b``                   ``K.choose(TEST, lambda: a, lambda: b)``; also ``T.if_then_else``
``a and b``, ``not a``                 ``K.logical(False, lambda: a, lambda: b)``, ``K.negation(a)``
``if TEST: ... else: ...``             ``for b in K.cases(TEST):`` around ``if b: ...`` and ``else: ...``; in ``T.Parallel`` too
``if TEST: ...``                       ``if K.test(TEST): ...``
``T.loop_break()``                     ``break``
====================================  ================================================================================

If a loop variable has the same name as a value from outside of the loop, the name refers to that value again after the loop, as
in TileLang-Ascend's lexical scoping. In Python, the name would keep the value of the last iteration.
"""

from __future__ import annotations

import ast
import builtins as python
from collections.abc import Mapping, Sequence
from copy import deepcopy
from types import CellType, CodeType, FunctionType
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)
K = "__kernel__"
"""The name by which the rewritten source refers to the interpreter's functions (``RewrittenCalls``)."""
_OUTER = "__kernel_with_its_closure__"
_BRANCHES = ("Scope", "Then", "Else", "If", "rs", "SimdVF", "SimtVF")
_JUMPS = (ast.Break, ast.Continue, ast.Return)


def _called(node: ast.AST) -> str:
    """Returns the last name of the function that a node calls: ``Parallel`` for ``T.Parallel(8)``; empty if it is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _kernel(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_load(K), name, ast.Load()), list(arguments), [])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def _names(target: ast.expr | None) -> list[str]:
    """Returns the names that the target of an assignment or a loop binds."""
    return [] if target is None else [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]


def _at(node: ast.AST, made: N) -> N:
    """Gives a new statement or expression the author's line and column."""
    return ast.fix_missing_locations(ast.copy_location(made, node))


class Rewriter(ast.NodeTransformer):
    """Rewrites the statements of one function of a kernel (see the module's docstring)."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._bound: list[str] = [argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)]
        self._reads = {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        self._in_parallel = False
        self._count = 0

    def _fresh(self, what: str) -> str:
        self._count += 1
        return f"__{what}_{self._count}"

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Returns the rewritten statements of a block; names that the block binds leave scope at its end."""
        outer = list(self._bound)
        made: list[ast.stmt] = []
        for statement in statements:
            found = self.visit(statement)
            made.extend(found if isinstance(found, list) else [found])
            if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    self._bound += _names(target)
        self._bound = outer
        return made

    # --- loops -----------------------------------------------------------------------------------------------------------

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        names = _names(node.target)
        hidden = [name for name in names if name in self._bound and name != "_"]
        parallel = _called(node.iter) == "Parallel"
        source = self.visit(node.iter)
        outer, self._in_parallel = self._in_parallel, self._in_parallel or parallel
        self._bound += names
        body = self.body(node.body)
        del self._bound[len(self._bound) - len(names):]
        self._in_parallel = outer
        if parallel:
            on_arrays = not any(isinstance(part, (*_JUMPS, ast.While, ast.With)) for part in ast.walk(node))
            one = self._fresh("pass")
            frame = ast.With([ast.withitem(_load(one), node.target)], body)
            made: ast.stmt = ast.For(_store(one), _kernel("parallel", source, ast.Constant(on_arrays)), [_at(node, frame)], [])
        else:
            made = ast.For(node.target, _kernel("loop", source), body, [self.visit(part) for part in node.orelse])
        loop = _at(node, made)
        if not hidden:
            return loop
        kept = self._fresh("hidden")
        save = ast.Assign([_store(kept)], _kernel("values", _locals(), *map(ast.Constant, hidden)))
        back = ast.Assign([ast.Tuple([_store(name) for name in hidden], ast.Store())], _load(kept))
        return [_at(node, save), loop, _at(node, back)]

    def visit_While(self, node: ast.While) -> ast.stmt:
        test = self.visit(node.test)
        leave = ast.If(_kernel("negation", test), [ast.Break()], [])
        poll = self._fresh("poll")
        give_up = ast.If(_kernel("waits_in_vain", _load(poll)), [ast.Break()], [])
        body = [_at(node, leave), _at(node, give_up), *self.body(node.body)]
        return _at(node, ast.For(_store(poll), _kernel("endless"), body, []))

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if _called(node.value) == "loop_break":
            return _at(node, ast.Break())
        return self.generic_visit(node)

    # --- frames and branches ---------------------------------------------------------------------------------------------

    def visit_With(self, node: ast.With) -> ast.stmt:
        item, *others = node.items
        body: list[ast.stmt] = [_at(node, ast.With(others, node.body))] if others else node.body
        source, target = self.visit(item.context_expr), item.optional_vars
        name = _called(item.context_expr)
        names = _names(target)
        self._bound += names
        made = self.body(body)
        del self._bound[len(self._bound) - len(names):]
        if name == "Kernel":
            count = len(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else int(target is not None)
            last = names[-1] if names else "_"
            named = count > 1 and last != "_"
            one = self._fresh("block")
            frame = ast.With([ast.withitem(_load(one), target)], made)
            read = named and last in self._reads
            blocks = _kernel("blocks", source, ast.Constant(count), ast.Constant(named), ast.Constant(read))
            return _at(node, ast.For(_store(one), blocks, [_at(node, frame)], []))
        if name in _BRANCHES and target is None:
            here = self._fresh("here")
            inside = ast.If(_load(here), made, [])
            opened = ast.withitem(_kernel("frame", source), _store(here))
            return _at(node, ast.With([opened], [_at(node, inside)]))
        return _at(node, ast.With([ast.withitem(source, target)], made))

    def visit_If(self, node: ast.If) -> ast.stmt:
        test = self.visit(node.test)
        body, other = self.body(node.body), self.body(node.orelse)
        jumps = any(isinstance(part, _JUMPS) for part in ast.walk(node))
        if jumps or not (self._in_parallel or other):
            return _at(node, ast.If(test if other else _kernel("test", test), body, other))
        one = self._fresh("case")
        inside = ast.If(_load(one), body, other)
        return _at(node, ast.For(_store(one), _kernel("cases", test), [_at(node, inside)], []))

    # --- expressions -----------------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test, chosen, other = (self.visit(part) for part in (node.test, node.body, node.orelse))
        return _at(node, _kernel("choose", test, _lambda(chosen), _lambda(other)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _called(node) == "if_then_else" and len(node.args) == 3 and not node.keywords:
            test, chosen, other = (self.visit(part) for part in node.args)
            return _at(node, _kernel("choose", test, _lambda(chosen), _lambda(other)))
        if isinstance(node.func, ast.Name) and node.func.id in ("int", "float", "bool") and len(node.args) == 1:
            return _at(node, _kernel("number", node.func, self.visit(node.args[0])))
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        parts = [_lambda(self.visit(part)) for part in node.values]
        return _at(node, _kernel("logical", ast.Constant(isinstance(node.op, ast.Or)), *parts))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        made = self.generic_visit(node)
        assert isinstance(made, ast.UnaryOp)
        return _at(node, _kernel("negation", made.operand)) if isinstance(node.op, ast.Not) else made

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            return self.generic_visit(node)
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        parts = [_lambda(ast.Compare(left, [op], [right])) for left, op, right in zip(sides, node.ops, sides[1:], strict=False)]
        return _at(node, _kernel("logical", ast.Constant(False), *parts))

    # --- assignments -----------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        value = self.visit(node.value)
        targets = [self.visit(target) for target in node.targets]
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            name = targets[0].id
            return _at(node, ast.Assign(targets, _kernel("assign", ast.Constant(name), _value_of(name), value)))
        if all(isinstance(target, ast.Subscript) for target in targets):
            return _at(node, ast.Assign(targets, value))
        # several targets: the value is assigned to a temporary, and from it to each name
        held = self._fresh("value")
        made: list[ast.stmt] = [ast.Assign([_store(held)], _kernel("read", value))]
        for target in targets:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else None
            if parts is None or any(isinstance(part, ast.Starred) for part in parts):
                made.append(ast.Assign([target], _load(held)))
                continue
            temporaries = [self._fresh("part") for _ in parts]
            made.append(ast.Assign([ast.Tuple([_store(one) for one in temporaries], ast.Store())], _load(held)))
            for part, one in zip(parts, temporaries, strict=True):
                value = _load(one)
                if isinstance(part, ast.Name):
                    value = _kernel("assign", ast.Constant(part.id), _value_of(part.id), value)
                made.append(ast.Assign([part], value))
        return [_at(node, statement) for statement in made]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            return _at(node, ast.AugAssign(self.visit(node.target), node.op, value))
        name = node.target.id
        made = ast.BinOp(_load(name), node.op, value)
        return _at(node, ast.Assign([node.target], _kernel("assign", ast.Constant(name), _value_of(name), made)))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        if node.value is None:
            return node
        return self.visit_Assign(_at(node, ast.Assign([node.target], node.value)))

    def visit_FunctionDef(self, node: N) -> N:
        return node  # a helper inside of a kernel is plain Python

    visit_Lambda = visit_FunctionDef


def _locals() -> ast.Call:
    return ast.Call(_load("locals"), [], [])


def _value_of(name: str) -> ast.expr:
    """Returns an expression for the current value of a name; the expression is None if the name has no value yet."""
    return ast.Call(ast.Attribute(_locals(), "get", ast.Load()), [ast.Constant(name)], [])


def compiled(node: ast.FunctionDef, file: str, free: Sequence[str]) -> CodeType:
    """Returns the code object of the rewritten function.

    Args:
        node: the definition of the author's function; its decorators, annotations and defaults are ignored.
        file: the path of the author's file, for tracebacks and debuggers.
        free: the names of the function's closure variables.
    """
    body = Rewriter(node).body(deepcopy(node.body))
    arguments = ast.arguments(
        [ast.arg(each.arg) for each in node.args.posonlyargs], [ast.arg(each.arg) for each in node.args.args],
        ast.arg(node.args.vararg.arg) if node.args.vararg else None, [ast.arg(each.arg) for each in node.args.kwonlyargs],
        [None for _ in node.args.kwonlyargs], ast.arg(node.args.kwarg.arg) if node.args.kwarg else None, [])
    inner = _at(node, ast.FunctionDef(node.name, arguments, body or [ast.Pass()], [], None))
    outer = ast.FunctionDef(_OUTER, ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, []),
                            [inner, ast.Return(_load(node.name))], [], None)
    for definition in (inner, outer):
        if hasattr(definition, "type_params"):
            definition.type_params = []
    module = ast.fix_missing_locations(ast.copy_location(ast.Module([_at(node, outer)], []), node))
    code = compile(module, file, "exec", dont_inherit=True)
    holder = next(part for part in code.co_consts if isinstance(part, CodeType))
    return next(part for part in holder.co_consts if isinstance(part, CodeType) and part.co_name == node.name)


def executable(function: FunctionType, node: ast.FunctionDef, file: str, names: Mapping[str, object],
               cells: Mapping[str, object], builtins: Mapping[str, object], interpreter: object) -> FunctionType:
    """Returns the rewritten function as a callable Python function.

    Args:
        function: the author's function, whose closure, globals and defaults are used.
        node: the definition of the author's function.
        file: the path of the author's file.
        names: the values of additional global names, which take precedence over those of the module.
        cells: for some closure variables, the values to use instead of their contents, by name.
        builtins: the replacements of Python builtins, by name.
        interpreter: the object with the functions that the rewritten source calls.
    """
    free = list(function.__code__.co_freevars)
    code = compiled(node, file, free)
    own = dict(zip(free, function.__closure__ or (), strict=True))
    closure = tuple(CellType(cells[name]) if name in cells else own[name] for name in code.co_freevars)
    namespace = {**function.__globals__, **names, K: interpreter}
    own_builtins = function.__globals__.get("__builtins__")  # of the main module a module, of others a dict
    namespace["__builtins__"] = {**(own_builtins if isinstance(own_builtins, dict) else vars(python)), **builtins}
    made = FunctionType(code, namespace, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
