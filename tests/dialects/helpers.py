"""A function to put single ops in: values of any type on demand, and the op's own line of text."""

from __future__ import annotations

import re
from functools import cache

import pytest
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import print_module, verify_module
from tilelang_npu.dialects.text.reader import TextParser
from tilelang_npu.errors import TileError

_SPACE = re.compile(r"\b(gm|cbuf|ca|cb|cc|ub)\b$")


@cache
def type_of(text: str) -> Attribute:
    """A type; ``4x8xf32 ub`` is a memref in UB, ``4x8xf32`` a tensor, anything without an ``x`` between sizes itself."""
    if space := _SPACE.search(text):
        text = f"memref<{text[:space.start()].strip()}, #hivm.address_space<{space[1]}>>"
    elif re.match(r"(\d+|\?)x", text):
        text = f"tensor<{text}>"
    return TextParser(make_context(), text, "<type>").parse_type()


class Kernel:
    """A function whose arguments are the requested values; ops are appended to its body."""

    def __init__(self) -> None:
        self.block = Block()

    def __call__(self, type_text: str, name: str | None = None) -> SSAValue:
        """A new argument of that type."""
        value = self.block.insert_arg(type_of(type_text), len(self.block.args))
        value.name_hint = name or chr(ord("a") + len(self.block.args) - 1)
        return value

    def module(self, *ops: Operation, target: str = "") -> ModuleOp:
        """The module of one function with these ops."""
        self.block.add_ops([*ops, ReturnOp()])
        types = FunctionType.from_lists([arg.type for arg in self.block.args], [])
        module = ModuleOp([FuncOp("f", types, Region(self.block))])
        if target:
            from tilelang_npu.dialects.hacc import TargetAttr

            module.attributes["hacc.target"] = TargetAttr(target)
        return module


def body(module: ModuleOp) -> str:
    """The lines of the module's only function, without indentation."""
    lines = print_module(module).splitlines()
    return "\n".join(line.strip() for line in lines[2:-3])


def refusal(module: ModuleOp) -> str:
    """Returns the verifier's message for a module that breaks a rule."""
    with pytest.raises(TileError) as caught:
        verify_module(module)
    assert caught.value.code == "T602"
    return caught.value.message
