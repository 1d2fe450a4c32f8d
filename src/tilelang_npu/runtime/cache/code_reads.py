"""Finds the names that a code object reads from outside of its body: globals, closure variables, parameters and imports.

A read is described by a chain: the name, and the attributes that the following instructions load from its value. The chain of
``config.tiles.M`` is ``("config", "tiles", "M")``. The analysis includes the code of functions, classes and comprehensions that
are defined in the code. The analysis is conservative: an unknown instruction with a name counts as the read of a global.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType
from typing import NamedTuple

from tilelang_npu.sharing import PARSING

Chain = tuple[str, ...]
"""A name, followed by the attributes that are read from its value: ``("config", "tiles", "M")`` for ``config.tiles.M``."""

_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_SUPER = {"LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD"}
_OTHER_NAMES = {*_ATTRIBUTE, *_SUPER, "STORE_ATTR", "DELETE_ATTR", "STORE_NAME", "DELETE_NAME", "STORE_GLOBAL", "DELETE_GLOBAL",
              "IMPORT_NAME", "IMPORT_FROM"}
_GLOBAL = {dis.opname[number] for number in dis.hasname} - _OTHER_NAMES
_CLOSURE = {dis.opname[number] for number in dis.hasfree} - {"LOAD_CLOSURE", "STORE_DEREF", "DELETE_DEREF", "MAKE_CELL"}
_TRANSPARENT = {"EXTENDED_ARG", "CACHE", "NOP"}
"""Instructions that may occur between the load of a value and the load of its attribute."""

_ESCAPES = {
    "__globals__", "__builtins__", "__closure__", "__code__", "__module__", "__annotations__", "__annotate__", "__subclasses__",
    "__static_attributes__", "__hash__", "__loader__", "__spec__", "f_globals", "f_locals", "f_builtins", "f_back", "gi_frame",
    "ag_frame", "cr_frame", "tb_frame"}
"""Attributes through which code can read values that no chain names."""


class Reads(NamedTuple):
    """The names that a code object reads from outside of its body, as chains (see :data:`Chain`).

    Attributes:
        outside: the chains that begin with a global or a built-in.
        closure: the chains that begin with a variable of an enclosing function.
        texts: the chains in string constants that are possibly annotations; they can begin with any name.
        imports: the names of the modules that the code imports when it runs; a relative import has a leading dot.
        escape: an attribute, such as ``__globals__``, through which the code can read values that no chain describes; empty if
            the code reads no such attribute.
    """

    outside: tuple[Chain, ...]
    closure: tuple[Chain, ...]
    texts: tuple[Chain, ...]
    imports: tuple[str, ...]
    escape: str


def _chains(code: CodeType, loaded: Callable[[dis.Instruction], tuple[str, ...]]) -> Iterator[Chain]:
    """Yields the names that instructions load, each with the attributes that the following instructions load from it.

    Args:
        code: the code.
        loaded: returns the names that an instruction loads, the top of the stack last; an empty string for a name that is not
            of interest.
    """
    chain: Chain = ()
    for step in dis.get_instructions(code):
        if step.opname in _TRANSPARENT:
            continue
        if chain and step.opname in _ATTRIBUTE:
            chain = (*chain, step.argval)
            continue
        if chain:
            yield chain
        *below, top = loaded(step) or ("",)
        yield from ((name,) for name in below if name)
        chain = (top,) if top else ()


@functools.lru_cache(maxsize=4096)
def reads(code: CodeType) -> Reads:
    """Returns the names that a code object, including the functions and classes defined in it, reads from outside."""
    def loaded(step: dis.Instruction) -> tuple[str, ...]:
        if step.opname in _GLOBAL:
            return (step.argval,)
        # The mark \0 distinguishes a closure variable from a global of the same name.
        return (f"\0{step.argval}",) if step.opname in _CLOSURE and step.argval in code.co_freevars else ()

    chains = dict.fromkeys(_chains(code, loaded))
    outside = dict.fromkeys(chain for chain in chains if not chain[0].startswith("\0"))
    closure = dict.fromkeys((chain[0][1:], *chain[1:]) for chain in chains if chain[0].startswith("\0"))
    imports: dict[str, None] = {}
    escape = ""
    level = 0
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTE | _SUPER and step.argval in _ESCAPES:
            escape = escape or step.argval
        elif step.opname == "IMPORT_NAME":
            imports["." * level + step.argval] = None
        elif isinstance(step.argval, int):
            level = step.argval  # an import takes its level from the constant loaded before it
    texts: dict[Chain, None] = {}
    if code.co_flags & __future__.annotations.compiler_flag:  # annotations are strings then
        texts.update(dict.fromkeys(_chains_in_texts(code.co_consts)))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads(constant)
            outside.update(dict.fromkeys(inner.outside))
            closure.update(dict.fromkeys(chain for chain in inner.closure if chain[0] in code.co_freevars))
            texts.update(dict.fromkeys(inner.texts))
            imports.update(dict.fromkeys(inner.imports))
            escape = escape or inner.escape
    return Reads(tuple(outside), tuple(closure), tuple(texts), tuple(imports), escape)


@functools.lru_cache(maxsize=4096)
def reads_of_parameters(code: CodeType, names: frozenset[str] | None = None) -> tuple[Chain, ...]:
    """Returns the chains of all reads of a function's parameters, including reads in functions and classes defined in its code.

    Args:
        code: the code of a function.
        names: the parameters of an enclosing function to look for; None for the function's own parameters.
    """
    own = names is None
    if names is None:
        names = frozenset(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])

    def loaded(step: dis.Instruction) -> tuple[str, ...]:
        if "LOAD_FAST" in step.opname:
            if step.argval in code.co_cellvars:  # the cell for an inner function's closure (from Python 3.13)
                return ()
        elif step.opname not in _CLOSURE:
            return ()
        found = step.argval if isinstance(step.argval, tuple) else (step.argval,)  # LOAD_FAST_LOAD_FAST loads two
        return tuple(name if name in names else "" for name in found)

    found = dict.fromkeys(_chains(code, loaded))
    if own and "__class__" in code.co_freevars and "super" in code.co_names and code.co_argcount:
        found[code.co_varnames[:1]] = None  # super() without arguments reads the first parameter
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(reads_of_parameters(constant, names & frozenset(constant.co_freevars))))
    if code.co_flags & __future__.annotations.compiler_flag:
        found.update(dict.fromkeys(chain for chain in _chains_in_texts(code.co_consts) if chain[0] in names))
    return tuple(found)


def chains_in(tree: ast.AST) -> Iterator[Chain]:
    """Yields the chains of all names that a Python expression reads (see :data:`Chain`)."""
    attributes: Chain = ()
    node = tree
    while isinstance(node, ast.Attribute):
        attributes, node = (node.attr, *attributes), node.value
    if isinstance(node, ast.Name):
        yield node.id, *attributes
    else:
        for child in ast.iter_child_nodes(node):
            yield from chains_in(child)


def _chains_in_texts(constants: tuple[object, ...]) -> Iterator[Chain]:
    for constant in constants:
        if isinstance(constant, tuple):
            yield from _chains_in_texts(constant)
        elif isinstance(constant, str) and constant.isprintable():
            try:
                with PARSING:
                    tree = ast.parse(constant, mode="eval")
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                continue
            yield from chains_in(tree)
