"""linalg in the syntax of LLVM 19: ops that xDSL lacks, or whose implied body in xDSL does not fit mixed element types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.dialects.linalg import Linalg as _Upstream
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.ops import BroadcastOp as _Broadcast
from xdsl.dialects.linalg.ops import GenericOp as _Generic
from xdsl.dialects.linalg.ops import TransposeOp as _Transpose
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    operand_def,
    prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects.ir.attribute_kinds import EnumAttr
from tilelang_npu.dialects.ir.declaration import DialectOp, extend_dialect, operation, replace_rules
from tilelang_npu.dialects.mlir.linalg_rules import (
    input_count,
    matrix_product,
    verify_broadcast,
    verify_elementwise,
    verify_generic,
    verify_index,
    verify_reduce,
    verify_transpose,
)
from tilelang_npu.dialects.mlir.named_ops import NUMBERS, define_named_op
from tilelang_npu.dialects.text.reader import TextParser

_Yield: Any = next(op for op in _Upstream.operations if op.name == "linalg.yield")


class UnaryFnAttr(EnumAttr, attr_name="linalg.unary_fn",
                  cases={word: number for number, word in enumerate(
        ("exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf"))}):
    """The function that ``linalg.elemwise_unary`` applies to each element."""


class BinaryFnAttr(EnumAttr, attr_name="linalg.binary_fn",
                   cases={word: number for number, word in enumerate(
        ("add", "sub", "mul", "div", "div_unsigned", "max_signed", "min_signed", "max_unsigned", "min_unsigned", "powf"))}):
    """The function that ``linalg.elemwise_binary`` applies to each pair of elements."""


class TypeFnAttr(EnumAttr, attr_name="linalg.type_fn", cases={"cast_signed": 0, "cast_unsigned": 1}):
    """Whether operands are treated as signed or as unsigned when they are converted to the element type of the result."""


_NAMED = (
    define_named_op("linalg.elemwise_unary", "Applies the function ``fun`` to each element.", rules=[verify_elementwise],
                    properties={"fun?": UnaryFnAttr, "cast?": TypeFnAttr}),
    define_named_op("linalg.elemwise_binary", "Applies the function ``fun`` to each pair of elements.",
                    rules=[verify_elementwise],
                    properties={"fun?": BinaryFnAttr, "cast?": TypeFnAttr}),
    *(define_named_op(f"linalg.{name}", doc, rules=[input_count(2), matrix_product(batches=batches, transposed=transposed)],
                      properties={"cast?": TypeFnAttr}) for name, batches, transposed, doc in (
        ("matmul", 0, "", "Adds the product of two matrices to the destination."),
        ("matmul_transpose_a", 0, "a", "Adds the product of two matrices, the first transposed, to the destination."),
        ("matmul_transpose_b", 0, "b", "Adds the product of two matrices, the second transposed, to the destination."),
        ("batch_matmul", 1, "", "Adds one product of two matrices per batch to the destination."),
        ("batch_matmul_transpose_a", 1, "a", "Adds one product per batch, the first matrix transposed, to the destination."),
        ("batch_matmul_transpose_b", 1, "b", "Adds one product per batch, the second matrix transposed, to the destination."))),
    *(define_named_op(f"linalg.{name}", doc, rules=[input_count(count), verify_elementwise]) for name, count, doc in (
        ("abs", 1, "The absolute value of each element."), ("ceil", 1, "Each element, rounded up."),
        ("floor", 1, "Each element, rounded down."), ("negf", 1, "Each element, negated."),
        ("reciprocal", 1, "The reciprocal of each element."), ("round", 1, "Each element, rounded, halves away from zero."),
        ("rsqrt", 1, "The reciprocal of the square root of each element."), ("square", 1, "The square of each element."),
        ("tanh", 1, "The hyperbolic tangent."), ("erf", 1, "The error function."),
        ("div", 2, "The quotient of each pair of elements."),
        ("div_unsigned", 2, "The quotient of each pair of unsigned elements."),
        ("powf", 2, "The power of each pair of elements."),
        ("select", 3, "Selects the element of the second input where the first is true, else that of the third."))))


class _WithPayload(DialectOp):
    """Base of the ops whose body may be abbreviated to its single op: ``{ arith.addf }``."""

    ACCUMULATES: ClassVar[bool]

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the body reads the old values of the destination."""
        return self.ACCUMULATES

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op with a body or with its abbreviation."""
        payload: tuple[type[Operation], dict[str, Attribute]] | None = None
        if parser.parse_optional_punctuation("{") is not None:
            name = parser.parse_identifier()
            op_type = parser.ctx.get_optional_op(name)
            if op_type is None:
                parser.raise_error(f"unknown op {name}")
            payload = (op_type, parser.parse_optional_attr_dict())
            parser.parse_punctuation("}")
        ins, outs = _group(parser, "ins"), _group(parser, "outs")
        properties = _dimensions(parser) if cls.ACCUMULATES else {}
        attributes = parser.parse_optional_attr_dict()
        if payload is None:
            arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
            body = parser.parse_region(arguments)
        else:
            body = _body(payload, ins, outs, accumulates=cls.ACCUMULATES)
        types = [out.type for out in outs if isinstance(out.type, TensorType)]
        if parser.parse_optional_punctuation("->") is not None:
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.build(operands=[ins, outs if cls.ACCUMULATES else outs[0]], result_types=[types], regions=[body],
                         properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom form, with the abbreviation of the body if there is one."""
        src: Sequence[SSAValue] = self.operands[:self._inputs()]
        dst: Sequence[SSAValue] = self.operands[self._inputs():]
        body = self.regions[0]
        short = _abbreviation(body, accumulates=self.ACCUMULATES)
        if short is not None:
            printer.print_string(f" {{ {short.name}")
            printer.print_op_attributes({name: value for name, value in {**short.properties, **short.attributes}.items()
                                         if str(value) not in ("#arith.fastmath<none>", "#arith.overflow<none>")})
            printer.print_string(" }")
        for word, values in (("ins", src), ("outs", dst)):
            printer.print_string(f" {word}(")
            printer.print_list(values, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(values, lambda value: printer.print_attribute(value.type))
            printer.print_string(")")
        dimensions = self.properties.get("dimensions")
        if isinstance(dimensions, DenseArrayBase):
            printer.print_string(" dimensions = [")
            printer.print_list(dimensions.get_values(), lambda axis: printer.print_string(str(axis)))
            printer.print_string("]")
        printer.print_op_attributes(self.attributes)
        if short is None:
            printer.print_string(" (")
            printer.print_list(body.block.args, printer.print_block_argument)
            printer.print_string(") ")
            printer.print_region(body, print_entry_block_args=False)

    def _inputs(self) -> int:
        """The number of inputs: a reduction has one output per input, a map has one output."""
        return len(self.operands) // 2 if self.ACCUMULATES else len(self.operands) - 1


def _group(parser: Parser, word: str) -> list[SSAValue]:
    parser.parse_keyword(word)
    with parser.in_parens():
        values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    return list(parser.resolve_operands(values, types, parser.pos))


def _dimensions(parser: Parser) -> dict[str, Attribute]:
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return {"dimensions": DenseArrayBase.from_list(i64, axes)}


def _element(value: SSAValue) -> Attribute:
    element: Attribute = getattr(value.type, "element_type", value.type)
    return element


def _body(payload: tuple[type[Operation], dict[str, Attribute]], ins: list[SSAValue], outs: list[SSAValue], *,
          accumulates: bool) -> Region:
    """The body in full for an op with an abbreviated body. Its op takes the accumulator, if there is one, before the inputs."""
    op_type, given = payload
    block = Block(arg_types=[_element(value) for value in (*ins, *(outs if accumulates else ()))])
    operands = [*block.args[len(ins):], *block.args[:len(ins)]] if accumulates else list(block.args)
    definition = op_type.get_irdl_definition() if issubclass(op_type, IRDLOperation) else None
    names = definition.properties.keys() if definition is not None else ()
    properties: dict[str, Any] = {name: value for name, value in given.items() if name in names}
    made = op_type.create(operands=operands, result_types=[_element(outs[0])], properties=properties,
                          attributes={name: value for name, value in given.items() if name not in names})
    block.add_ops([made, _Yield(*made.results)])
    return Region(block)


def _abbreviation(body: Region, *, accumulates: bool) -> Operation | None:
    """The single op of a body, if its operands are the body's arguments in the order of the abbreviation; else None."""
    block = body.block
    ops = list(block.ops)
    if len(ops) != 2 or not isinstance(ops[1], _Yield) or list(ops[1].operands) != list(ops[0].results):
        return None
    arguments: list[SSAValue] = list(block.args)
    if accumulates:
        half = len(arguments) // 2
        arguments = [*arguments[half:], *arguments[:half]]
    fits = list(ops[0].operands) == arguments and not ops[0].regions and len(ops[0].results) == 1
    return ops[0] if fits and ops[0].results[0].type == arguments[0].type else None


@operation(rules=[verify_reduce], reads=("src",), writes=("dst",))
class ReduceOp(_WithPayload):
    """Reduces axes by a body, starting from the old values of the destinations."""

    name = "linalg.reduce"
    src = var_operand_def()
    dst = var_operand_def()
    result = var_result_def(TensorType)
    combiner = region_def("single_block")
    dimensions = prop_def(NUMBERS)
    ACCUMULATES: ClassVar[bool] = True
    irdl_options = (SameVariadicOperandSize(),)


@operation(reads=("src",), writes=("dst",))
class MapOp(_WithPayload):
    """Applies a body to the elements at each index of the inputs."""

    name = "linalg.map"
    src = var_operand_def()
    dst = operand_def()
    result = var_result_def(TensorType)
    mapper = region_def("single_block")
    ACCUMULATES: ClassVar[bool] = False


class GenericOp(_Generic):
    """Executes a body in a loop nest over the elements of the operands.

    Unlike in xDSL, the text may name the attributes by an alias: ``linalg.generic #trait``.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom assembly form."""
        if isinstance(parser, TextParser):
            parser.take_dictionary_alias()
        return super().parse(parser)

    def verify_(self) -> None:
        super().verify_()
        verify_generic(self)


class _WithAttributes:
    """Mixin for an op whose text may end with a dictionary of attributes, which xDSL's own form of the op neither parses nor
    prints.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Parses the op in its custom assembly form."""
        made = super().parse(parser)  # type: ignore[misc]  # of the other base class
        made.attributes |= parser.parse_optional_attr_dict()
        return made

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        super().print(printer)  # type: ignore[misc]  # of the other base class
        printer.print_op_attributes(self.attributes)  # type: ignore[attr-defined]  # of the other base class


class BroadcastOp(_WithAttributes, _Broadcast):
    """Repeats a tensor along added axes."""

    def verify_(self) -> None:
        verify_broadcast(self)


class TransposeOp(_WithAttributes, _Transpose):
    """Permutes the axes of a tensor."""

    def verify_(self) -> None:
        verify_transpose(self)

def _print_attributes_first(base: type[NamedOperation]) -> type[NamedOperation]:
    """Returns an op of xDSL that prints the attributes first, as MLIR does."""
    return type(base.__name__, (base,), {"__doc__": base.__doc__, "__module__": __name__, "PRINT_ATTRS_IN_FRONT": True})



_XDSL_ELEMENTWISE = {
    kind.name.removeprefix("linalg."): kind for kind in _Upstream.operations if kind.name.removeprefix("linalg.") in (
        "add", "sub", "mul", "max", "min", "exp", "log", "sqrt", "fill", "copy")}
_XDSL_BINARY = ("add", "sub", "mul", "max", "min")


def _with_rules(name: str, kind: type[Operation]) -> type[Operation]:
    assert issubclass(kind, IRDLOperation)
    counted = input_count(2 if name in _XDSL_BINARY else 1)

    def check(op: Operation) -> None:
        counted(op)
        verify_elementwise(op)

    return replace_rules(kind, check, PRINT_ATTRS_IN_FRONT=True)


_Index: Any = next(op for op in _Upstream.operations if op.name == "linalg.index")
_REPLACED: tuple[type[Operation], ...] = (
    *_NAMED, *(_with_rules(name, kind) for name, kind in _XDSL_ELEMENTWISE.items()),
    replace_rules(_Index, verify_index), ReduceOp, MapOp, GenericOp, BroadcastOp, TransposeOp)
_KEPT = tuple(_print_attributes_first(op) for op in _Upstream.operations
                if issubclass(op, NamedOperation) and op.name not in {own.name for own in _REPLACED})
Linalg = extend_dialect(_Upstream, *_REPLACED, *_KEPT, attributes=[UnaryFnAttr, BinaryFnAttr, TypeFnAttr])
