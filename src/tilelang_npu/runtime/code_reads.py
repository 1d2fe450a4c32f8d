"""What a code object reads from outside: globals, closure variables, parameters, imports, and the attributes of each.

A read is a chain: a name, and the attributes that the following instructions load from it, as in ``config.tiles.M``. The
analysis includes the code of functions, classes and comprehensions that are defined in the code. It leaves out no read: an
instruction with a name that it does not know counts as the read of a global.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["Chain", "Reads", "chains_in", "reads", "reads_of_parameters"]

Chain = tuple[str, ...]
"""A name, and the attributes that are read of it."""

_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}
_SUPER = {"LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD"}
_NO_GLOBAL = {*_ATTRIBUTE, *_SUPER, "STORE_ATTR", "DELETE_ATTR", "STORE_NAME", "DELETE_NAME", "STORE_GLOBAL", "DELETE_GLOBAL",
              "IMPORT_NAME", "IMPORT_FROM"}
_GLOBAL = {dis.opname[number] for number in dis.hasname} - _NO_GLOBAL
_CLOSURE = {dis.opname[number] for number in dis.hasfree} - {"LOAD_CLOSURE", "STORE_DEREF", "DELETE_DEREF", "MAKE_CELL"}
_NOTHING = {"EXTENDED_ARG", "CACHE", "NOP"}
"""Instructions that may stand between the load of a value and that of its attribute."""

_LEADS_OUT = {
    "__globals__", "__builtins__", "__closure__", "__code__", "__module__", "__annotations__", "__annotate__", "__subclasses__",
    "__static_attributes__", "__hash__", "__loader__", "__spec__", "f_globals", "f_locals", "f_builtins", "f_back", "gi_frame",
    "ag_frame", "cr_frame", "tb_frame"}
"""Attributes through which code reads what no chain names."""


class Reads(NamedTuple):
    """What code reads from outside.

    Attributes:
        outside: chains that begin with a global, or with one of Python's own functions.
        closure: chains that begin with a variable of an enclosing function.
        texts: chains in texts that may be annotations, which begin with any of these, or with anything else.
        imports: the modules that it imports where it runs; with a leading dot where that is relative.
        leads_out: an attribute through which it reads what no chain names; empty if there is none.
    """

    outside: tuple[Chain, ...]
    closure: tuple[Chain, ...]
    texts: tuple[Chain, ...]
    imports: tuple[str, ...]
    leads_out: str


def _chains(code: CodeType, loaded: Callable[[dis.Instruction], tuple[str, ...]]) -> Iterator[Chain]:
    """The names that instructions load, each with the attributes that the instructions after it load from it.

    Args:
        code: the code.
        loaded: the names that an instruction loads, the last one on top; an empty text for one that does not count.
    """
    chain: Chain = ()
    for step in dis.get_instructions(code):
        if step.opname in _NOTHING:
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
    """What code reads from outside, and the code that is defined in it."""
    def loaded(step: dis.Instruction) -> tuple[str, ...]:
        if step.opname in _GLOBAL:
            return (step.argval,)
        # a name of both kinds would be told apart by the mark
        return (f"\0{step.argval}",) if step.opname in _CLOSURE and step.argval in code.co_freevars else ()

    chains = dict.fromkeys(_chains(code, loaded))
    outside = dict.fromkeys(chain for chain in chains if not chain[0].startswith("\0"))
    closure = dict.fromkeys((chain[0][1:], *chain[1:]) for chain in chains if chain[0].startswith("\0"))
    imports: dict[str, None] = {}
    leads_out = ""
    level = 0
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTE | _SUPER and step.argval in _LEADS_OUT:
            leads_out = leads_out or step.argval
        elif step.opname == "IMPORT_NAME":
            imports["." * level + step.argval] = None
        elif isinstance(step.argval, int):
            level = step.argval  # what an import takes first
    texts: dict[Chain, None] = {}
    if code.co_flags & __future__.annotations.compiler_flag:  # annotations are texts then, evaluated where they stand
        texts.update(dict.fromkeys(_chains_in_texts(code.co_consts)))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads(constant)
            outside.update(dict.fromkeys(inner.outside))
            closure.update(dict.fromkeys(chain for chain in inner.closure if chain[0] in code.co_freevars))
            texts.update(dict.fromkeys(inner.texts))
            imports.update(dict.fromkeys(inner.imports))
            leads_out = leads_out or inner.leads_out
    return Reads(tuple(outside), tuple(closure), tuple(texts), tuple(imports), leads_out)


@functools.lru_cache(maxsize=4096)
def reads_of_parameters(code: CodeType, names: frozenset[str] | None = None) -> tuple[Chain, ...]:
    """The parameters that code reads, and the code that is defined in it, with the attributes that are read of each.

    Args:
        code: the code.
        names: those that are read as variables of an outer function; None for the function's own.
    """
    own = names is None
    if names is None:
        names = frozenset(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])

    def loaded(step: dis.Instruction) -> tuple[str, ...]:
        if "LOAD_FAST" in step.opname:
            if step.argval in code.co_cellvars:  # the cell, for the closure of a function that is made here (from Python 3.13)
                return ()
        elif step.opname not in _CLOSURE:
            return ()
        found = step.argval if isinstance(step.argval, tuple) else (step.argval,)  # some load two
        return tuple(name if name in names else "" for name in found)

    found = dict.fromkeys(_chains(code, loaded))
    if own and "__class__" in code.co_freevars and "super" in code.co_names and code.co_argcount:
        found[code.co_varnames[:1]] = None  # super() without arguments takes the first one
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(reads_of_parameters(constant, names & frozenset(constant.co_freevars))))
    if code.co_flags & __future__.annotations.compiler_flag:
        found.update(dict.fromkeys(chain for chain in _chains_in_texts(code.co_consts) if chain[0] in names))
    return tuple(found)


def chains_in(tree: ast.AST) -> Iterator[Chain]:
    """The names in an expression, each with the attributes that are read of it."""
    attributes: Chain = ()
    node = tree
    while isinstance(node, ast.Attribute):
        attributes, node = (node.attr, *attributes), node.value
    if isinstance(node, ast.Name):
        yield node.id, *attributes
    else:
        for child in ast.iter_child_nodes(node):
            yield from chains_in(child)


def _chains_in_texts(constants: tuple[Any, ...]) -> Iterator[Chain]:
    for constant in constants:
        if isinstance(constant, tuple):
            yield from _chains_in_texts(constant)
        elif isinstance(constant, str) and constant.isprintable():
            try:
                tree = ast.parse(constant, mode="eval")
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                continue
            yield from chains_in(tree)
