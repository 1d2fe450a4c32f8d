"""*Eager functions*: functions under ``jit`` that consist of a host part in plain Python and, below it, ``with T.Kernel``.

The host part is executed as Python code, except that ``A: T.Tensor(shape, dtype)`` declares a parameter of the kernel. It runs
twice. In the first run, ``T.const`` returns placeholders; if a declared shape contains a placeholder, the shape of the argument
determines the size. In the second run, ``T.const`` returns the sizes.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType

from tilelang_npu.errors import Location, TileError
from tilelang_npu.language import eager
from tilelang_npu.language.functions import PrimFunc
from tilelang_npu.language.types import Tensor
from tilelang_npu.sharing import once
from tilelang_npu.traced import source
from tilelang_npu.traced.locations import span

_DECLARE, _LOCALS, _OUTER = "__tilelang_declare__", "__tilelang_locals__", "__tilelang_outer__"


@dataclass(frozen=True)
class HostParameter:
    """A declaration ``name: annotation`` of a kernel parameter, which the host part has executed."""

    name: str
    annotation: object


@dataclass(frozen=True)
class Made:
    """A kernel that the host part of an eager function has created.

    Attributes:
        kernel: the kernel. Its parameters are the declared ones in the order of the function's signature, then the tensors that
            the call allocates with ``T.empty``.
        returned: the positions of the kernel's parameters that the function returns.
        kept: the positions of the tensors that a call allocates but does not return.
    """

    kernel: PrimFunc
    returned: list[int]
    kept: list[int]


class Eager:
    """An eager function, which declares the kernel's tensors in its body.

    Args:
        function: the Python function.
        found: the source of the function.
        place: the index of the statement ``with T.Kernel`` in the function's body.

    Attributes:
        parameters: the names of all parameters of the function.
        declared: the names of the parameters that are tensors or numbers of the kernel, in order.
        unread: the names of ``declared`` that the host part does not read.
        annotations: the syntax trees of the annotations in the host part, which Python itself does not evaluate.
    """

    def __init__(self, function: FunctionType, found: source.Source, place: int) -> None:
        self._function, self._found = function, found
        self._compiled: dict[bool, CodeType] = {}
        node = found.node
        given = node.args
        self.parameters = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        self._host, rest = node.body[:place], node.body[place:]
        self._result: ast.Return | None = None
        if isinstance(rest[-1], ast.Return):
            self._result, rest = rest[-1], rest[:-1]
        self._kernel = rest
        self._places: dict[str, ast.AST] = {argument.arg: argument for argument in (*given.args, *given.kwonlyargs)
                                            if isinstance(function.__annotations__.get(argument.arg), Tensor)}
        self._places.update(self._declarations())
        self.declared = [name for name in self.parameters if name in self._places]
        read = {part.id for statement in self._host for part in ast.walk(statement)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        self.unread = frozenset(self.declared) - read
        self.annotations = [part.annotation for statement in self._host for part in ast.walk(statement)
                            if isinstance(part, ast.AnnAssign)]

    def _declarations(self) -> Iterator[tuple[str, ast.AnnAssign]]:
        for statement in self._host:
            for node in ast.walk(statement):
                if (isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name)
                        and node.target.id in self.parameters):
                    yield node.target.id, node

    def sizes(self, arguments: Mapping[str, object], named: Mapping[str, int]) -> dict[str, int]:
        """Returns the sizes that ``T.const`` names: the given ones, and those that the shapes of the arguments determine.

        Executes the host part, without assertions, with placeholders for unknown sizes. If the host part raises an exception,
        the declarations before it are used.

        Args:
            arguments: the arguments of the call by parameter name; an argument with a shape can determine sizes.
            named: the sizes that are already known, by name.

        Raises:
            TileError: T403, the shapes of two arguments contradict each other; T151, the host part raises an exception before
                it has declared a tensor that determines an unknown size.
        """
        declared: list[HostParameter] = []
        stopped: Exception | None = None
        with eager.known(named, looking=True) as asked:
            try:
                self._run(self._code(asserts=False), arguments, declared)
            except Exception as error:  # noqa: BLE001  (a stand-in's or the user's: the next run raises it again)
                stopped = error
        found = dict(named)
        told: dict[str, str] = {}
        for one in declared:
            shape = getattr(arguments.get(one.name), "shape", None)
            if shape is None or not isinstance(one.annotation, Tensor):
                continue
            for axis, (size, length) in enumerate(zip(one.annotation.shape, shape, strict=False)):
                if isinstance(size, eager.Size) and found.setdefault(size.name, int(length)) != length:
                    raise TileError(f"{size.name} is {found[size.name]} in {told[size.name]} and {length} in axis {axis} of "
                                    f"{one.name}", code="T403", location=self._at(one.name),
                                    help="pass arrays that have the same size in both axes")
                if isinstance(size, eager.Size):
                    told.setdefault(size.name, f"axis {axis} of {one.name}")
        unknown = [name for name in asked if name not in found]
        if stopped is not None and unknown:
            raise TileError(f"T.const: {unknown[0]!r} is not known, and the function stops before it declares a tensor that "
                            f"has it: {type(stopped).__name__}: {stopped}", code="T151",
                            location=span(self._found.node, self._found.file, self._found.lines),
                            help=f"declare the tensors first, or compile({unknown[0]}=...)") from stopped
        return found

    def make(self, arguments: Mapping[str, object], sizes: Mapping[str, int]) -> Made:
        """Executes the host part and returns the kernel.

        Args:
            arguments: the arguments of the call by parameter name; a missing argument is None in the host part.
            sizes: the sizes that ``T.const`` returns, by name.

        Raises:
            TileError: T151, a declaration was not executed, or a tensor has two names; T708, the function returns a value that
                was not created with ``T.empty`` in the host part.
        """
        function, found = self._function, self._found
        with eager.known(sizes):
            names = self._run(self._code(asserts=True), arguments, [])
        declared = {name: value for name in self.declared if isinstance(value := names.get(name), HostParameter)}
        missing = [name for name in self.declared if name not in declared
                   and not isinstance(function.__annotations__.get(name), Tensor)]
        if missing:
            raise TileError(f"the declaration of {missing[0]!r} was not executed", code="T151", location=self._at(missing[0]),
                            help="declare each tensor on every path to `with T.Kernel`")
        self._check_names({name: value for name, value in names.items() if isinstance(value, (HostParameter, eager.Empty))})
        made = {name: value for name, value in names.items() if isinstance(value, eager.Empty)}
        returned = self._returned(made)
        order = [*self.declared, *returned, *(name for name in made if name not in returned)]
        annotations = {name: value.annotation for name, value in declared.items()}
        annotations.update({name: function.__annotations__[name] for name in self.declared if name not in annotations})
        annotations.update({name: Tensor(value.shape, value.dtype) for name, value in made.items()})
        places = {**self._assignments(), **self._places}
        node = ast.FunctionDef(found.node.name, ast.arguments([], [
            ast.copy_location(ast.arg(name, None), places.get(name, found.node)) for name in order], None, [], [], None, []),
            self._kernel or [ast.Pass()], [], None)
        ast.copy_location(node, found.node)
        others = {name: value for name, value in names.items() if name not in annotations}
        kernel = PrimFunc(function, annotations, {})
        kernel.definition = source.Source(node, found.file, found.lines), others
        count = len(self.declared)
        return Made(kernel, [count + number for number in range(len(returned))],
                    [count + number for number in range(len(returned), len(made))])

    def _check_names(self, tensors: Mapping[str, object]) -> None:
        """Checks that each tensor has one name: under a second name the kernel would get another tensor."""
        first: dict[int, str] = {}
        for name, value in tensors.items():
            other = first.setdefault(id(value), name)
            if other != name:
                place = self._assignments().get(name, self._found.node)
                raise TileError(f"{name!r} is a second name of the tensor {other!r}", code="T151",
                                location=span(place, self._found.file, self._found.lines), help=f"use {other} instead")

    def _returned(self, made: Mapping[str, eager.Empty]) -> list[str]:
        if self._result is None or self._result.value is None:
            return []
        value = self._result.value
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        chosen = []
        for part in parts:
            if not isinstance(part, ast.Name) or part.id not in made or part.id in chosen:
                raise TileError(f"`{ast.unparse(part)}` is returned, but is no tensor of a T.empty above the kernel",
                                code="T708", location=span(part, self._found.file, self._found.lines),
                                help="create it with T.empty(shape, dtype); arguments are written in place and not returned")
            chosen.append(part.id)
        return chosen

    def _assignments(self) -> dict[str, ast.AST]:
        return {target.id: target for statement in self._host for node in ast.walk(statement) if isinstance(node, ast.Assign)
                for target in node.targets if isinstance(target, ast.Name)}

    def _at(self, name: str) -> Location:
        return span(self._places[name], self._found.file, self._found.lines)

    def _run(self, code: CodeType, arguments: Mapping[str, object], declared: list[HostParameter]) -> dict[str, object]:
        """The names at the end of the host part; its declarations are added to ``declared`` as they are executed."""
        function = self._function
        free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        given: dict[str, object] = {name: cell.cell_contents for name, cell in free.items() if _is_full(cell)}

        def declare(name: str, annotation: object) -> HostParameter:
            declared.append(HostParameter(name, annotation))
            return declared[-1]

        names: dict[str, Callable[..., Callable[..., dict[str, object]]]] = {}
        exec(code, function.__globals__, names)
        host = names[_OUTER](**{name: given.get(name) for name in free}, **{_DECLARE: declare, _LOCALS: builtins.locals})
        left = host(**{name: arguments.get(name) for name in self.parameters})
        return {name: value for name, value in left.items() if name not in free and name not in (_DECLARE, _LOCALS)}

    def _code(self, *, asserts: bool) -> CodeType:
        """The code of a function that takes the closure and returns the host part as a function of the parameters."""
        if asserts not in self._compiled:
            self._compiled[asserts] = compile(self._host_module, self._found.file, "exec", dont_inherit=True,
                                              optimize=0 if asserts else 1)
        return self._compiled[asserts]

    @once
    def _host_module(self) -> ast.Module:
        node = self._found.node
        declarations = _Declarations(self.parameters)
        body = [declarations.visit(deepcopy(statement)) for statement in self._host]
        body.append(ast.Return(ast.Call(ast.Name(_LOCALS, ast.Load()), [], [])))
        inner = ast.FunctionDef(node.name, _arguments(self.parameters), body, [], None)
        free = [*self._function.__code__.co_freevars, _DECLARE, _LOCALS]
        outer = ast.FunctionDef(_OUTER, _arguments(free), [inner, ast.Return(ast.Name(node.name, ast.Load()))], [], None)
        for made in (inner, outer):
            ast.copy_location(made, node)
        return ast.fix_missing_locations(ast.Module([outer], []))


def read(function: object) -> Eager | None:
    """Returns the eager function for a Python function; None if it does not contain ``with T.Kernel``, or has no source."""
    if not isinstance(function, FunctionType):
        return None
    try:
        found = source.find(function)
    except TileError:
        return None
    for place, statement in enumerate(found.node.body):
        if isinstance(statement, ast.With) and any(_is_kernel(item.context_expr) for item in statement.items):
            return Eager(function, found, place)
    return None


class _Declarations(ast.NodeTransformer):
    """Makes ``A: annotation`` of a parameter an assignment, as Python does not evaluate annotations of local names."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self._parameters = parameters

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None or not isinstance(node.target, ast.Name) or node.target.id not in self._parameters:
            return node
        call = ast.Call(ast.Name(_DECLARE, ast.Load()), [ast.Constant(node.target.id), node.annotation], [])
        return ast.copy_location(ast.Assign([ast.Name(node.target.id, ast.Store())], call), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node


def _arguments(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name, None) for name in names], None, [], [], None, [])


def _is_full(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (an empty cell raises)
    except ValueError:
        return False
    return True


def _is_kernel(node: ast.expr) -> bool:
    """Whether this is ``T.Kernel(...)``, whatever the name of the language is."""
    called = node.func if isinstance(node, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name == "Kernel"
