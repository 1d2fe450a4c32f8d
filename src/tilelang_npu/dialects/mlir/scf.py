"""The ops of scf as LLVM 19 writes them, where xDSL has none or no custom form: loops whose iterations have no order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IndexType, IntegerType, TensorType, i64
from xdsl.dialects.utils.dynamic_index_list import parse_dynamic_index_without_type
from xdsl.ir import Attribute, Block, Region, SSAValue
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
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.ir.declaration import DialectOp, extend_dialect, operation, replace_rules

_INDEX = IndexType()
_NUMBERS = DenseArrayBase.constr(i64)
_Numbers: TypeAlias = tuple[list[UnresolvedOperand], list[int]]


@operation()
class InParallelOp(DialectOp):
    """What the iterations of ``scf.forall`` put together: each inserts its slice into a result that all share."""

    name = "scf.forall.in_parallel"
    region = region_def("single_block")
    traits = traits_def(NoTerminator(), IsTerminator())

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read ``{ tensor.parallel_insert_slice .. }``."""
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls.build(regions=[region], attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        """Write the same."""
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False, print_block_terminators=True)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), ForallOp):
            msg = "expects parent op 'scf.forall'"
            raise VerifyException(msg)
        for op in self.region.block.ops:
            if op.name != "tensor.parallel_insert_slice":
                msg = f"expected only tensor.parallel_insert_slice ops, but found '{op.name}'"
                raise VerifyException(msg)


@operation(side_effects=True)
class ForallOp(DialectOp):
    """A loop nest whose iterations have no order: ``scf.forall (%i, %j) in (%n, 4) shared_outs(%o = %t) -> (T)``.

    ``mapping`` may say which iteration is whose, as ``[#hivm.block]``.
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
        """How many loops are nested."""
        return len(self.staticUpperBound)

    @property
    def terminator(self) -> InParallelOp:
        """The last op, which puts the slices together."""
        last = self.region.block.last_op
        assert isinstance(last, InParallelOp)
        return last

    def bounds(self) -> list[list[SSAValue | int]]:
        """Lower bounds, upper bounds and steps, each a list with a number or a value per loop."""
        return [_mixed(static, dynamic) for static, dynamic in (
            (self.staticLowerBound, self.lower), (self.staticUpperBound, self.upper), (self.staticStep, self.steps))]

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read the custom form; without an op that puts slices together, an empty one is meant."""
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
        """Write the custom form; bounds from 0 in steps of 1 are left out."""
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
            _wrong(f"produces {len(self.result)} results, but has only {len(self.outputs)} outputs")
        arguments = self.region.block.args
        if len(arguments) != self.rank + len(self.outputs):
            _wrong(f"region expects {self.rank} arguments")
        for number, argument in enumerate(arguments[:self.rank]):
            if argument.type != _INDEX:
                _wrong(f"expects {number}-th block argument to be an index")
        for number, (argument, output, result) in enumerate(
                zip(arguments[self.rank:], self.outputs, self.result, strict=True)):
            if argument.type != output.type:
                _wrong(f"type mismatch between {number}-th output and corresponding block argument")
            if result.type != output.type:
                _wrong(f"type mismatch between {number}-th output and its result")
        if self.mapping is not None and len(self.mapping) not in (0, self.rank):
            _wrong("mapping attribute size must match op rank")
        for word, static, dynamic in (("lower bound", self.staticLowerBound, self.lower),
                                      ("upper bound", self.staticUpperBound, self.upper),
                                      ("step", self.staticStep, self.steps)):
            if len(static) != self.rank:
                _wrong(f"expected {self.rank} {word} values, got {len(static)}")
            markers = list(static.get_values()).count(DYNAMIC_INDEX)
            if markers != len(dynamic):
                _wrong(f"expected {markers} dynamic {word} values")
        if not isinstance(self.region.block.last_op, InParallelOp):
            _wrong("expects regions to end with 'scf.forall.in_parallel'")


class ParallelOp(scf.ParallelOp):
    """A loop nest whose iterations have no order and whose results are folded from what each of them gives."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read ``(%i) = (%lower) to (%upper) step (%step) init (%x) -> T { .. scf.reduce(..) }``."""
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
        """Write the same."""
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
            _wrong("needs at least one tuple element for lowerBound, upperBound and step")
        super().verify_()


class ReduceOp(scf.ReduceOp):
    """How what the iterations of ``scf.parallel`` give is folded: a body for each result, with commas between them."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """Read ``(%a, %b : T, U) { .. }, { .. }``."""
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
        """Write the same."""
        if self.args:
            printer.print_string("(")
            printer.print_list(self.args, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(self.args.types, printer.print_attribute)
            printer.print_string(")")
        for number, region in enumerate(self.reductions):
            printer.print_string(", " if number else " ")
            printer.print_region(region)
        if self.reductions:  # attributes alone would be read as a body
            printer.print_op_attributes(self.attributes)


class IfOp(scf.IfOp):
    """A branch; one that ends in an op that is not known may leave out ``scf.yield`` as any other may."""

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
                continue  # an op that is not known
            types = () if last is None else last.operand_types
            if tuple(types) != tuple(self.result_types):
                _wrong(f"a branch yields ({', '.join(map(str, types))}), where the results are"
                       f" ({', '.join(map(str, self.result_types))})")


def _with_yields(op: Any) -> Any:
    """Returns the op, after adding an empty ``scf.yield`` to each region without a terminator."""
    for region in op.regions:
        if not region.blocks:
            region.add_block(Block())
        last = region.blocks[-1].last_op
        if last is None or not last.has_trait(IsTerminator, value_if_unregistered=True):
            region.blocks[-1].add_op(scf.YieldOp())
    return op


class IndexSwitchOp(scf.IndexSwitchOp):
    """``scf.index_switch``; a case without results may omit ``scf.yield``."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        return _with_yields(super().parse(parser))


class ExecuteRegionOp(scf.ExecuteRegionOp):
    """``scf.execute_region``; its terminator is always printed, because MLIR refuses an empty region."""

    def print(self, printer: Printer) -> None:
        """Write ``-> (T) { .. scf.yield %x : T }``."""
        if self.outs:
            printer.print_string(" -> (")
            printer.print_list(self.outs.types, printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False, print_block_terminators=True)
        printer.print_op_attributes(self.attributes)


class WhileOp(scf.WhileOp):
    """``scf.while``; a loop without loop-carried values may omit their list."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
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


def _flows(word: str, given: Sequence[Attribute], wanted: Sequence[Attribute]) -> None:
    """What one place of a loop hands to another is what that one takes."""
    if list(given) != list(wanted):
        _wrong(f"{word}: given are ({', '.join(map(str, given))}), wanted ({', '.join(map(str, wanted))})")


def _yields(word: str, block: Block, wanted: Sequence[Attribute]) -> None:
    last = block.last_op
    if isinstance(last, scf.YieldOp):
        _flows(word, last.operand_types, wanted)


def _region_runs(op: Any) -> None:
    blocks = list(op.region.blocks)
    if not blocks:
        _wrong("region needs to have at least one block")
    if blocks[0].args:
        _wrong("region cannot have any arguments")
    for block in blocks:
        _yields("what the region yields is not what the op has for results", block, op.result_types)


def _loops(op: Any) -> None:
    scf.ForOp.verify_(op)
    _flows("mismatch of loop-carried values and defined values", op.iter_args.types, op.result_types)


def _loops_while(op: Any) -> None:
    before, after = op.before_region.block, op.after_region.block
    _flows("what the loop starts with is not what its condition takes", op.arguments.types, before.arg_types)
    condition = before.last_op
    if not isinstance(condition, scf.ConditionOp):
        _wrong("expects the 'before' region to end with 'scf.condition'")
    else:
        _flows("what the condition hands on is not what the body takes", condition.operand_types[1:], after.arg_types)
        _flows("what the condition hands on is not what the op has for results", condition.operand_types[1:], op.result_types)
    if not isinstance(after.last_op, scf.YieldOp):
        _wrong("expects the 'after' region to end with 'scf.yield'")
    _yields("what the body yields is not what the condition takes", after, before.arg_types)


def _wrong(message: str) -> None:
    raise VerifyException(message)


def _mixed(static: Any, dynamic: Sequence[SSAValue]) -> list[SSAValue | int]:
    rest = iter(dynamic)
    return [next(rest) if number == DYNAMIC_INDEX else number for number in static.get_values()]


def _numbers(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, values)


def _names(parser: Parser) -> list[Parser.UnresolvedArgument]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False))


def _operands(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def _index_list(parser: Parser) -> _Numbers:
    """Numbers and values; a value stands as a marker among the numbers."""
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
    """The types behind an arrow; a single one needs no parentheses."""
    parser.parse_punctuation("->")
    return list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))


Scf = extend_dialect(
    scf.Scf, ForallOp, InParallelOp, ParallelOp, ReduceOp, IfOp, IndexSwitchOp,
    replace_rules(ExecuteRegionOp, _region_runs), replace_rules(scf.ForOp, _loops), replace_rules(WhileOp, _loops_while))
