"""Functions under ``jit`` that contain ``with T.Kernel`` themselves: a host part in plain Python, and the kernel below it.

The host part runs as Python at its own lines, except that ``A: T.Tensor(shape, dtype)`` declares a parameter of the kernel. It
runs twice. The first time ``T.const`` returns stand-ins; where a declared shape has one of them, the argument's shape gives the
size.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

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
    """A parameter of the kernel in the host part: its name and its annotation."""

    name: str
    annotation: Any


@dataclass(frozen=True)
class Made:
    """A kernel of an eager function.

    Attributes:
        kernel: the kernel: declared parameters in the order of the signature, then the tensors that the call allocates.
        returned: the positions of the parameters that are returned.
        kept: the positions of tensors that a call allocates and does not return.
    """

    kernel: PrimFunc
    returned: list[int]
    kept: list[int]


class Eager:
    """A function that declares its tensors in its body.

    Args:
        function: the function.
        found: its source.
        place: the position of the statement ``with T.Kernel`` in the body.

    Attributes:
        parameters: the names of all parameters.
        declared: the names of the kernel's parameters, in order.
        unread: those of them that the host part does not read.
        annotations: the annotations in the host part, which Python itself does not evaluate.
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

    def sizes(self, arguments: Mapping[str, Any], named: Mapping[str, int]) -> dict[str, int]:
        """The sizes by name: those that are given, and those that the shapes of arguments determine.

        The host part runs as far as it can with stand-ins for unknown sizes, without its assertions.

        Args:
            arguments: by parameter; an argument with a shape determines sizes.
            named: sizes that are known.

        Raises:
            TileError: T403, two arguments contradict each other; T151, the host part raises before it has declared the tensors.
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
                                    help="pass arrays that fit together")
                if isinstance(size, eager.Size):
                    told.setdefault(size.name, f"axis {axis} of {one.name}")
        unknown = [name for name in asked if name not in found]
        if stopped is not None and unknown:
            raise TileError(f"T.const: {unknown[0]!r} is not known, and the function stops before it declares a tensor that "
                            f"has it: {type(stopped).__name__}: {stopped}", code="T151",
                            location=span(self._found.node, self._found.file, self._found.lines),
                            help=f"declare the tensors first, or compile({unknown[0]}=...)") from stopped
        return found

    def make(self, arguments: Mapping[str, Any], sizes: Mapping[str, int]) -> Made:
        """Runs the host part and returns the kernel.

        Args:
            arguments: by parameter; a missing one is None in the host part.
            sizes: the sizes that ``T.const`` returns.

        Raises:
            TileError: T151, a declaration that is neither a tensor nor a number; T708, a returned value that was not made here.
        """
        function, found = self._function, self._found
        with eager.known(sizes):
            names = self._run(self._code(asserts=True), arguments, [])
        declared = {name: names[name] for name in self.declared if isinstance(names.get(name), HostParameter)}
        missing = [name for name in self.declared if name not in declared
                   and not isinstance(function.__annotations__.get(name), Tensor)]
        if missing:
            raise TileError(f"the declaration of {missing[0]!r} was not reached", code="T151", location=self._at(missing[0]),
                            help="declare each tensor on every way to the kernel")
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
                                location=span(place, self._found.file, self._found.lines), help=f"write {other} in its place")

    def _returned(self, made: Mapping[str, eager.Empty]) -> list[str]:
        if self._result is None or self._result.value is None:
            return []
        value = self._result.value
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
        chosen = []
        for part in parts:
            if not isinstance(part, ast.Name) or part.id not in made or part.id in chosen:
                raise TileError(f"`{ast.unparse(part)}` is returned, which no T.empty above the kernel made", code="T708",
                                location=span(part, self._found.file, self._found.lines),
                                help="make it with T.empty(shape, dtype); arguments are written in place and not returned")
            chosen.append(part.id)
        return chosen

    def _assignments(self) -> dict[str, ast.AST]:
        return {target.id: target for statement in self._host for node in ast.walk(statement) if isinstance(node, ast.Assign)
                for target in node.targets if isinstance(target, ast.Name)}

    def _at(self, name: str) -> Location:
        return span(self._places[name], self._found.file, self._found.lines)

    def _run(self, code: CodeType, arguments: Mapping[str, Any], declared: list[HostParameter]) -> dict[str, Any]:
        """The names at the end of the host part; its declarations are added to ``declared`` as they are executed."""
        function = self._function
        free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        given: dict[str, Any] = {name: cell.cell_contents for name, cell in free.items() if _is_full(cell)}

        def declare(name: str, annotation: Any) -> HostParameter:
            declared.append(HostParameter(name, annotation))
            return declared[-1]

        names: dict[str, Any] = {}
        exec(code, function.__globals__, names)
        host = names[_OUTER](**{name: given.get(name) for name in free}, **{_DECLARE: declare, _LOCALS: builtins.locals})
        left: dict[str, Any] = host(**{name: arguments.get(name) for name in self.parameters})
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
    """The function as an eager one; None where it does not contain ``with T.Kernel``, or has no source."""
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
