"""scf in the syntax of LLVM 19: parallel loops, which xDSL lacks or has only in generic form, and rules of the other ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from typing_extensions import Self
from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IndexType, IntegerType, TensorType, i64
from xdsl.dialects.utils.dynamic_index_list import parse_dynamic_index_without_type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator

from tilelang_npu.dialects.ir.declaration import DialectOp, extend_dialect, fail, operation
from tilelang_npu.dialects.ir.index_lists import mixed_values

_INDEX = IndexType()
_NUMBERS = DenseArrayBase.constr(i64)
_Numbers: TypeAlias = tuple[list[UnresolvedOperand], list[int]]


@operation()
class InParallelOp(DialectOp):
    """Terminates the body of a ``scf.forall``; its region inserts the slice of each iteration into a shared result."""

    name = "scf.forall.in_parallel"
    region = region_def("single_block")
    traits = traits_def(NoTerminator(), IsTerminator())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the region of the op: ``{ tensor.parallel_insert_slice .. }``."""
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls.build(regions=[region], attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False, print_block_terminators=True)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), ForallOp):
            fail("expects parent op 'scf.forall'")
        for op in self.region.block.ops:
            if op.name != "tensor.parallel_insert_slice":
                fail(f"expected only tensor.parallel_insert_slice ops, but found '{op.name}'")


@operation(side_effects=True)
class ForallOp(DialectOp):
    """Executes a loop nest whose iterations have no order: ``scf.forall (%i, %j) in (%n, 4) shared_outs(%o = %t) -> (T)``.

    ``mapping`` may assign the iterations to blocks or cores: ``[#hivm.block]``.
    """

    name = "scf.forall"
    lower = var_operand_def(IndexType)
    upper = var_operand_def(IndexType)
    steps = var_operand_def(IndexType)
    outputs = var_operand_def(TensorType)
    result = var_result_def(TensorType)
    staticLowerBound = prop_def(_NUMBERS)
    staticUpperBound = prop_def(_NUMBERS)
    staticStep = prop_def(_NUMBERS)
    mapping = opt_prop_def(ArrayAttr)
    region = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def rank(self) -> int:
        """The number of nested loops."""
        return len(self.staticUpperBound)

    @property
    def terminator(self) -> InParallelOp:
        """The last op of the body, whose region inserts the slices."""
        last = self.region.block.last_op
        assert isinstance(last, InParallelOp)
        return last

    def bounds(self) -> list[list[SSAValue | int]]:
        """Returns three lists, the lower bounds, the upper bounds and the steps, each with an int or an SSA value per loop."""
        return [mixed_values(static, dynamic) for static, dynamic in (
            (self.staticLowerBound, self.lower), (self.staticUpperBound, self.upper), (self.staticStep, self.steps))]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom form; adds an empty terminator to a body without one."""
        variables = _names(parser)
        lower: _Numbers
        steps: _Numbers
        if parser.parse_optional_keyword("in") is not None:
            upper = _index_list(parser)
            lower, steps = ([], [0 for _ in upper[1]]), ([], [1 for _ in upper[1]])
        else:
            parser.parse_punctuation("=")
            lower = _index_list(parser)
            parser.parse_keyword("to")
            upper = _index_list(parser)
            parser.parse_keyword("step")
            steps = _index_list(parser)
        shared: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
        types: list[Attribute] = []
        if parser.parse_optional_keyword("shared_outs") is not None:
            shared = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _assignment(parser))
            types = _arrow_types(parser)
        outputs = parser.resolve_operands([value for _, value in shared], types, parser.pos)
        arguments = [*(variable.resolve(_INDEX) for variable in variables),
                     *(argument.resolve(kind) for (argument, _), kind in zip(shared, types, strict=True))]
        region = parser.parse_region(arguments)
        last = region.block.last_op
        if not isinstance(last, InParallelOp):
            region.block.add_op(InParallelOp.build(regions=[Region(Block())]))
        attributes = parser.parse_optional_attr_dict()
        mapping = attributes.pop("mapping", None)
        return cls.build(
            operands=[*(parser.resolve_operands(dynamic, [_INDEX] * len(dynamic), parser.pos)
                        for dynamic, _ in (lower, upper, steps)), outputs],
            result_types=[types], regions=[region], attributes=attributes,
            properties={"staticLowerBound": _numbers(lower[1]), "staticUpperBound": _numbers(upper[1]),
                        "staticStep": _numbers(steps[1]), "mapping": mapping})

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom form; omits the lower bounds and the steps if all are 0 and 1."""
        lower, upper, steps = self.bounds()
        arguments = self.region.block.args
        printer.print_string(" (")
        printer.print_list(arguments[:self.rank], printer.print_ssa_value)
        if all(start == 0 for start in lower) and all(step == 1 for step in steps):
            printer.print_string(") in ")
            _print_mixed(printer, upper)
        else:
            printer.print_string(") = ")
            _print_mixed(printer, lower)
            printer.print_string(" to ")
            _print_mixed(printer, upper)
            printer.print_string(" step ")
            _print_mixed(printer, steps)
        if self.outputs:
            printer.print_string(" shared_outs(")
            printer.print_list(zip(arguments[self.rank:], self.outputs, strict=True), lambda pair: _print_pair(printer, *pair))
            printer.print_string(") -> (")
            printer.print_list(self.result.types, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False, print_empty_block=False,
                             print_block_terminators=bool(self.outputs))
        mapping = {} if self.mapping is None else {"mapping": self.mapping}
        printer.print_op_attributes({**self.attributes, **mapping})

    def verify_(self) -> None:
        if len(self.result) != len(self.outputs):
            fail(f"produces {len(self.result)} results, but has only {len(self.outputs)} outputs")
        arguments = self.region.block.args
        if len(arguments) != self.rank + len(self.outputs):
            fail(f"region expects {self.rank} arguments")
        for number, argument in enumerate(arguments[:self.rank]):
            if argument.type != _INDEX:
                fail(f"expects {number}-th block argument to be an index")
        for number, (argument, output, result) in enumerate(
                zip(arguments[self.rank:], self.outputs, self.result, strict=True)):
            if argument.type != output.type:
                fail(f"type mismatch between {number}-th output and corresponding block argument")
            if result.type != output.type:
                fail(f"type mismatch between {number}-th output and its result")
        if self.mapping is not None and len(self.mapping) not in (0, self.rank):
            fail("mapping attribute size must match op rank")
        for word, static, dynamic in (("lower bound", self.staticLowerBound, self.lower),
                                      ("upper bound", self.staticUpperBound, self.upper),
                                      ("step", self.staticStep, self.steps)):
            if len(static) != self.rank:
                fail(f"expected {self.rank} {word} values, got {len(static)}")
            markers = list(static.get_values()).count(DYNAMIC_INDEX)
            if markers != len(dynamic):
                fail(f"expected {markers} dynamic {word} values")
        if not isinstance(self.region.block.last_op, InParallelOp):
            fail("expects regions to end with 'scf.forall.in_parallel'")


class ParallelOp(scf.ParallelOp):
    """Executes a loop nest whose iterations have no order, and yields reductions over the iterations."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses ``(%i) = (%lower) to (%upper) step (%step) init (%x) -> T { .. scf.reduce(..) }``."""
        variables = _names(parser)
        parser.parse_punctuation("=")
        lower = _operands(parser)
        parser.parse_keyword("to")
        upper = _operands(parser)
        parser.parse_keyword("step")
        steps = _operands(parser)
        starts = _operands(parser) if parser.parse_optional_keyword("init") is not None else []
        types = _arrow_types(parser) if starts else []
        region = parser.parse_region([variable.resolve(_INDEX) for variable in variables])
        if not isinstance(region.block.last_op, scf.ReduceOp):
            region.block.add_op(ReduceOp())
        attributes = parser.parse_optional_attr_dict()
        bounds = [parser.resolve_operands(values, [_INDEX] * len(values), parser.pos) for values in (lower, upper, steps)]
        return cls.build(operands=[*bounds, parser.resolve_operands(starts, types, parser.pos)], result_types=[types],
                         regions=[region], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        printer.print_string(" (")
        printer.print_list(self.body.block.args, printer.print_ssa_value)
        for word, values in ((") = (", self.lowerBound), (") to (", self.upperBound), (") step (", self.step)):
            printer.print_string(word)
            printer.print_list(values, printer.print_ssa_value)
        printer.print_string(")")
        if self.initVals:
            printer.print_string(" init (")
            printer.print_list(self.initVals, printer.print_ssa_value)
            single = len(self.res) == 1
            printer.print_string(") -> " if single else ") -> (")
            printer.print_list(self.res.types, printer.print_attribute)
            printer.print_string("" if single else ")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if not self.body.block.args:
            fail("needs at least one tuple element for lowerBound, upperBound and step")
        super().verify_()


class ReduceOp(scf.ReduceOp):
    """Terminates the body of a ``scf.parallel``; has one region per result, which combines two values."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses ``(%a, %b : T, U) { .. }, { .. }``."""
        values: list[UnresolvedOperand] = []
        types: list[Attribute] = []
        if parser.parse_optional_punctuation("(") is not None:
            values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
            parser.parse_punctuation(":")
            types = list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))
            parser.parse_punctuation(")")
        regions = [region] if (region := parser.parse_optional_region()) is not None else []
        while regions and parser.parse_optional_punctuation(",") is not None:
            regions.append(parser.parse_region())
        return cls.build(operands=[parser.resolve_operands(values, types, parser.pos)], regions=[regions],
                         attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        if self.args:
            printer.print_string("(")
            printer.print_list(self.args, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(self.args.types, printer.print_attribute)
            printer.print_string(")")
        for number, region in enumerate(self.reductions):
            printer.print_string(", " if number else " ")
            printer.print_region(region)
        if self.reductions:  # without a body, the attributes would be parsed as one
            printer.print_op_attributes(self.attributes)


class IfOp(scf.IfOp):
    """An ``scf.if`` whose text may omit the ``scf.yield`` of a branch, also after an unregistered op."""

    @staticmethod
    def parse_region_with_yield(parser: Parser) -> Region:
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        block = region.blocks.last
        assert block is not None
        last = block.last_op
        if last is None or not last.has_trait(IsTerminator, value_if_unregistered=False):
            block.add_op(scf.YieldOp())
        return region

    def verify_(self) -> None:
        super().verify_()
        for region in self.regions:
            last = region.blocks[-1].last_op if region.blocks else None
            if last is not None and not isinstance(last, scf.YieldOp):
                continue  # an unregistered op, which may be a terminator
            types = () if last is None else last.operand_types
            if tuple(types) != tuple(self.result_types):
                fail(f"a branch yields ({', '.join(map(str, types))}), but the results of the op are"
                       f" ({', '.join(map(str, self.result_types))})")


OpT = TypeVar("OpT", bound=Operation)


def _with_terminators(op: OpT) -> OpT:
    """Returns the op, after adding an empty ``scf.yield`` to each region without a terminator."""
    for region in op.regions:
        if not region.blocks:
            region.add_block(Block())
        last = region.blocks[-1].last_op
        if last is None or not last.has_trait(IsTerminator, value_if_unregistered=True):
            region.blocks[-1].add_op(scf.YieldOp())
    return op


class IndexSwitchOp(scf.IndexSwitchOp):
    """An ``scf.index_switch`` whose text may omit the ``scf.yield`` of a case without results."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return _with_terminators(super().parse(parser))


class ExecuteRegionOp(scf.ExecuteRegionOp):
    """An ``scf.execute_region`` whose terminator is always printed, because MLIR rejects an empty region."""

    def print(self, printer: Printer) -> None:
        """Prints ``-> (T) { .. scf.yield %x : T }``."""
        if self.outs:
            printer.print_string(" -> (")
            printer.print_list(self.outs.types, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False, print_block_terminators=True)
        printer.print_op_attributes(self.attributes)


class WhileOp(scf.WhileOp):
    """An ``scf.while`` whose text may omit the list of loop-carried values if there are none."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        if parser.parse_optional_punctuation(":") is None:
            return super().parse(parser)
        place = parser.pos
        types = parser.parse_function_type()
        if types.inputs.data:
            parser.raise_error(f"expected a value for each of the {len(types.inputs.data)} types before the arrow", place)
        before = parser.parse_region([])
        parser.parse_keyword("do")
        after = parser.parse_region()
        made = cls([], types.outputs.data, before, after)
        stated = parser.parse_optional_attr_dict_with_keyword()
        if stated is not None:
            made.attributes |= stated.data
        return made


def _verify_types(word: str, given: Sequence[Attribute], wanted: Sequence[Attribute]) -> None:
    """Verifies that values passed along a control-flow edge have the types that the target expects."""
    if list(given) != list(wanted):
        fail(f"{word}: given ({', '.join(map(str, given))}), expected ({', '.join(map(str, wanted))})")


def _verify_yield(word: str, block: Block, wanted: Sequence[Attribute]) -> None:
    last = block.last_op
    if isinstance(last, scf.YieldOp):
        _verify_types(word, last.operand_types, wanted)


def _verify_execute_region(op: ExecuteRegionOp) -> None:
    blocks = list(op.region.blocks)
    if not blocks:
        fail("region needs to have at least one block")
    if blocks[0].args:
        fail("region cannot have any arguments")
    for block in blocks:
        _verify_yield("the types that the region yields are not those of the results", block, op.result_types)


def _verify_for(op: scf.ForOp) -> None:
    scf.ForOp.verify_(op)
    _verify_types("mismatch of loop-carried values and defined values", op.iter_args.types, op.result_types)


def _verify_while(op: WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    _verify_types("the initial values do not have the types of the arguments of the 'before' region", op.arguments.types,
                  before.arg_types)
    condition = before.last_op
    if not isinstance(condition, scf.ConditionOp):
        fail("expects the 'before' region to end with 'scf.condition'")
    else:
        _verify_types("the condition does not pass the types of the arguments of the 'after' region",
                      condition.operand_types[1:], after.arg_types)
        _verify_types("the condition does not pass the types of the results", condition.operand_types[1:], op.result_types)
    if not isinstance(after.last_op, scf.YieldOp):
        fail("expects the 'after' region to end with 'scf.yield'")
    _verify_yield("the body does not yield the types of the arguments of the 'before' region", after, before.arg_types)


def _numbers(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, values)


def _names(parser: Parser) -> list[Parser.UnresolvedArgument]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False))


def _operands(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def _index_list(parser: Parser) -> _Numbers:
    """Parses a list of numbers and values; returns the values, and the numbers with a marker for each value."""
    values = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_dynamic_index_without_type(parser))
    return ([value for value in values if not isinstance(value, int)],
            [value if isinstance(value, int) else DYNAMIC_INDEX for value in values])


def _assignment(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def _print_pair(printer: Printer, argument: SSAValue, value: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(value)


def _print_mixed(printer: Printer, values: Sequence[SSAValue | int]) -> None:
    printer.print_string("(")
    printer.print_list(values, lambda value: printer.print_string(str(value)) if isinstance(value, int)
                       else printer.print_ssa_value(value))
    printer.print_string(")")


def _arrow_types(parser: Parser) -> list[Attribute]:
    """Parses the types after an arrow; a single type needs no parentheses."""
    parser.parse_punctuation("->")
    return list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))


Scf = extend_dialect(
    scf.Scf, ForallOp, InParallelOp, ParallelOp, ReduceOp, IfOp, IndexSwitchOp,
    rules={ExecuteRegionOp: _verify_execute_region, scf.ForOp: _verify_for, WhileOp: _verify_while})
