"""scope: an op whose region of one block groups ops, such as the ops that one core executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import Self
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, lazy_traits_def, opt_prop_def, region_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect, SingleBlockImplicitTerminator, ensure_terminator

from tilelang_npu.dialects.ir.declaration import DialectOp, fail, operation


@operation(untouched=("arguments",))
class ReturnOp(DialectOp):
    """Terminates the region of a ``scope.scope`` with the values that become the results of the scope."""

    name = "scope.return"
    arguments = var_operand_def()
    traits = lazy_traits_def(lambda: (HasParent(ScopeOp), Pure(), IsTerminator()))
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *values: SSAValue | Operation) -> None:
        IRDLOperation.__init__(self, operands=[list(values)])


@operation()
class ScopeOp(DialectOp):
    """Executes a region of one block once: ``%r = scope.scope : () -> (i32) { ... scope.return %x : i32 } {attributes}``."""

    name = "scope.scope"
    no_inline = opt_prop_def(UnitAttr)
    res = var_result_def()
    region = region_def("single_block")
    traits = traits_def(SingleBlockImplicitTerminator(ReturnOp), RecursiveMemoryEffect())

    def __init__(self, body: Region | Block | Sequence[Operation], result_types: Sequence[Attribute] = (), *,
                 no_inline: bool = False, attributes: Mapping[str, Attribute] | None = None) -> None:
        """Builds the op; appends a ``scope.return`` to a body that has none.

        Args:
            body: the region, the block, or the ops of the body.
            result_types: the types of the results.
            no_inline: whether passes must keep the scope separate from the ops around it.
            attributes: further attributes.
        """
        region = body if isinstance(body, Region) else Region(body if isinstance(body, Block) else Block(body))
        IRDLOperation.__init__(self, result_types=[list(result_types)], regions=[region],
                               properties={"no_inline": UnitAttr() if no_inline else None},
                               attributes=dict(attributes or {}))
        ensure_terminator(self, SingleBlockImplicitTerminator(ReturnOp))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom assembly form."""
        parser.parse_punctuation(":")
        type_ = parser.parse_function_type()
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        attributes = parser.parse_optional_attr_dict()
        no_inline = attributes.pop("no_inline", None) is not None
        return cls(region, type_.outputs.data, no_inline=no_inline, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        printer.print_string(" : ")
        printer.print_function_type((), self.result_types)
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False, print_empty_block=False)
        shown = dict(self.attributes)
        if self.no_inline is not None:
            shown["no_inline"] = self.no_inline
        printer.print_op_attributes(shown)

    def verify_(self) -> None:
        if self.region.block.args:
            fail("region should have no arguments")
        last = self.region.block.last_op
        if not isinstance(last, ReturnOp):
            return
        edge = "control flow edge from Region #0 to parent results:"
        if len(last.operands) != len(self.results):
            fail(f"region {edge} source has {len(last.operands)} operands, but target successor needs {len(self.results)}")
        for number, (source, target) in enumerate(zip(last.operand_types, self.result_types, strict=True)):
            if source != target:
                fail(f"along {edge} source type #{number} '{source}' should match input type #{number} '{target}'")


Scope = Dialect("scope", [ScopeOp, ReturnOp], [])
