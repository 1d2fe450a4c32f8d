"""Makes the functions of ``T`` for entries of the op table: their docstrings, and one implementation under several names.

The op table (:mod:`tilelang_npu.ops`) describes operations with their element types, names and number of operands.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelang_npu import ops
from tilelang_npu.errors import TileError
from tilelang_npu.ops import Composite, Elementwise, Operation

__all__ = ["bound", "elementwise", "from_table", "function_of", "plain"]

SCRATCH = "``tmp`` is scratch memory in UB; its contents are undefined after the call."
"""The sentence on the argument ``tmp`` in the docstring of a function."""
_SAMPLES: Mapping[str, str] = {
    "scalar_value": "0.5", "scalarValue": "2", "min_scalar": "0.0", "max_scalar": "6.0", "min_val": "0.0", "max_val": "6.0",
    "Cond": "mask", "cmp_mod": '"lt"', "count": "64"}
"""The arguments of an example, for parameters that are not buffers or have a usual name."""


def elementwise(name: str, entry: Elementwise, signature: inspect.Signature) -> str:
    """Returns the docstring of the function of ``T`` for an elementwise operation.

    Args:
        name: the function's name after ``T.``.
        entry: the operation's entry in the op table.
        signature: the function's signature.
    """
    letter = "" if entry.condition else "ABCDE"[entry.inputs]
    target = next(key for key in signature.parameters if key in ("dst", "out", "Out", letter))
    inputs = [key for key, parameter in signature.parameters.items() if parameter.default is inspect.Parameter.empty
              and key not in (target, "cmp_mod")]
    buffers = [key for key in inputs if signature.parameters[key].annotation == "Tile"]
    scalars = [key for key in inputs if key not in buffers]
    # ascendc calls the destination dst or out; npuir gives it the letter after those of the inputs
    accumulates = isinstance(entry, Composite) and entry.accumulates
    lines = [f"Writes ``{target}``, reads {_listed(inputs + [target] * accumulates)}."]
    lines.append("All buffers have the same shape." if not entry.broadcast else
                 "All buffers have the same shape; an input with size 1 along an axis is repeated along it.")
    if scalars:
        lines.append(f"{_listed(scalars)} may be {'scalars' if len(scalars) > 1 else 'a scalar'}.")
    if entry.in_place:
        lines.append(f"``{target}`` may be {'the first input' if isinstance(entry, Composite) else 'an input'} itself.")
    if "tmp" in signature.parameters:
        lines.append(SCRATCH)
    others = {"same": "", "bool": f"; ``{target}`` is bool or int8", "any": f"; ``{target}`` may differ"}[entry.result]
    others += f"; ``{inputs[0]}`` is bool or int8" if entry.condition else ""
    example = f"Example: ``T.{name}({_sample(signature, target)})``"
    return "\n\n".join((entry.doc, textwrap.fill(" ".join(lines), 100), _types(entry, others), example))


def bound(what: str, signature: inspect.Signature, arguments: Sequence[object], keywords: Mapping[str, object],
          destination: str = "") -> dict[str, Any]:
    """Returns the arguments of a call by the names of their parameters, with defaults for omitted arguments.

    Args:
        what: the name of the call, for messages.
        signature: the signature of the called function.
        arguments: the positional arguments.
        keywords: the named arguments. ``src`` is accepted for ``src0`` in a function of one input.
        destination: the parameter that the operation writes, which an error names.

    Raises:
        TileError: T145, the arguments do not fit the signature.
    """
    given = dict(keywords)
    if "src" in given and "src" not in signature.parameters and "src1" not in signature.parameters:
        given["src0"] = given.pop("src")  # T.tile.exp(dst, src)
    try:
        found = signature.bind(*arguments, **given)
    except TypeError as wrong:
        written = f"; {destination} is the destination" if destination else ""
        raise TileError(f"{what}: {wrong}", code="T145", help=f"it is called as {what}{plain(signature)}{written}") from None
    found.apply_defaults()
    return found.arguments


def function_of(name: str, body: Callable[..., None], doc: str | None = None) -> Callable[..., None]:
    """Returns the function ``T.<name>``, which calls ``body`` with ``what="T.<name>"``, the name of the call in messages.

    Args:
        name: the name under ``T``, such as ``vgather`` or ``tile.gather``.
        body: the implementation, with a keyword-only parameter ``what``.
        doc: the docstring; without it the one of ``body``, see :func:`from_table`.
    """
    def call(*arguments: object, **keywords: object) -> None:
        body(*arguments, what=f"T.{name}", **keywords)

    signature = inspect.signature(body)
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]  # read by help() and by messages
        parameters=[parameter for parameter in signature.parameters.values() if parameter.name != "what"])
    call.__name__, call.__qualname__, call.__module__ = name.rsplit(".", 1)[-1], f"T.{name}", body.__module__
    call.__doc__ = from_table(name, name, body.__doc__ or "") if doc is None else doc
    return call


def _listed(names: Sequence[str]) -> str:
    quoted = [f"``{name}``" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _types(entry: Operation, more: str = "") -> str:
    return f"Element types: {', '.join(entry.dtypes)}{more}."


def _sample(signature: inspect.Signature, target: str) -> str:
    letters = iter("abcd")
    required = [key for key, parameter in signature.parameters.items() if parameter.default is inspect.Parameter.empty]
    return ", ".join("out" if key == target else _SAMPLES.get(key) or next(letters) for key in required)


def from_table(name: str, entry: str, doc: str) -> str:
    """Returns the docstring of a function of ``T`` that has several names.

    Args:
        name: the function's name after ``T.``, which replaces ``NAME`` in ``doc``.
        entry: the name of the operation in the op table, whose element types are added after the description.
        doc: the docstring of the implementation.
    """
    text = inspect.cleandoc(doc).replace("NAME", f"T.{name}")
    try:
        found = ops.operation(entry)
    except KeyError:  # several entries, or none: the text says what it works on
        return text
    description, mark, example = text.partition("\n\nExample:")
    return f"{description}\n\n{_types(found)}{mark}{example}"


def plain(signature: inspect.Signature) -> str:
    """Returns a signature as text for messages, with names and defaults but without annotations."""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
