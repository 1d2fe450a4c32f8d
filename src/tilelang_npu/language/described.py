"""Docstrings of the functions that come from the op table: what is written, shapes, element types, an example."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence

from tilelang_npu import ops
from tilelang_npu.ops import Composite, Elementwise, Operation

__all__ = ["elementwise", "from_table", "plain"]

_SAMPLES: Mapping[str, str] = {
    "scalar_value": "0.5", "scalarValue": "2", "min_scalar": "0.0", "max_scalar": "6.0", "min_val": "0.0", "max_val": "6.0",
    "Cond": "mask", "cmp_mod": '"lt"', "count": "64"}
"""What an example gives a parameter that is no buffer, or no buffer like the others."""


def elementwise(name: str, entry: Elementwise, signature: inspect.Signature) -> str:
    """The docstring of a function that computes each element of its destination from the same one of its inputs."""
    letter = "" if entry.condition else "ABCDE"[entry.inputs]
    target = next(key for key in signature.parameters if key in ("dst", "out", "Out", letter))
    inputs = [key for key, parameter in signature.parameters.items() if parameter.default is inspect.Parameter.empty
              and key not in (target, "cmp_mod")]
    buffers = [key for key in inputs if signature.parameters[key].annotation == "Tile"]
    scalars = [key for key in inputs if key not in buffers]
    # the destination has a word of its own in one dialect, in the other the letter behind those of the inputs
    lines = [f"Writes ``{target}``, reads {_listed(inputs + [target] * _accumulates(entry))}."]
    lines.append("Buffers have one shape." if not entry.broadcast else
                 f"Buffers have one shape; an input may have size 1 where ``{target}`` has not.")
    if scalars:
        lines.append(f"{_listed(scalars)} may be {'scalars' if len(scalars) > 1 else 'a scalar'}.")
    if entry.in_place:
        lines.append(f"``{target}`` may be {'the first input' if isinstance(entry, Composite) else 'an input'}.")
    others = {"same": "", "bool": f"; ``{target}`` has bool or int8", "any": f"; ``{target}`` has another one"}[entry.result]
    others += f"; ``{inputs[0]}`` has bool or int8" if entry.condition else ""
    example = f"Example: ``T.{name}({_sample(signature, target)})``"
    return "\n\n".join((entry.doc, textwrap.fill(" ".join(lines), 100), _types(entry, others), example))


def _accumulates(entry: Elementwise) -> bool:
    return isinstance(entry, Composite) and entry.accumulates


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
    """A docstring as it stands at a function that several names share: ``NAME`` is the name, and the entry's element types
    stand behind the description."""
    text = inspect.cleandoc(doc).replace("NAME", f"T.{name}")
    try:
        found = ops.operation(entry)
    except KeyError:  # several entries, or none: the text says what it works on
        return text
    description, mark, example = text.partition("\n\nExample:")
    return f"{description}\n\n{_types(found)}{mark}{example}"


def plain(signature: inspect.Signature) -> str:
    """A signature as a message has it: names and defaults."""
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
