"""Applies rewrite patterns to the operations of a module.

A pattern is a ``RewritePattern`` of xDSL. A pass that consists of patterns applies them with :func:`apply_patterns`. Like
MLIR's walk-based driver, this function visits every operation once and does not iterate to a fixpoint: a pattern that does not
rewrite an operation may record the reason as a remark, and a second visit would record the remark again.

xDSL's ``PatternRewriteWalker`` can also visit each operation once. But it queues every operation of the module even for a
pattern that matches a rare operation, and it adds the text of the module to a TileError that a pattern raises.
"""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from tilelang_npu.transforms.infra.op_builder import OpT


def apply_patterns(root: Operation, *patterns: RewritePattern, backward: bool = False,
                   classes: type[Operation] | tuple[type[Operation], ...] = Operation) -> None:
    """Visits each operation nested in ``root`` once, and applies the first pattern that rewrites the operation.

    Operations that the patterns insert are not visited.

    Args:
        root: the operation whose nested operations are visited; ``root`` itself is not visited.
        patterns: the patterns, in the order in which they are tried.
        backward: whether to visit in the reverse order: the last operation of a block first, and an operation after those
            inside it. The users of a value are then visited before the operation that computes it.
        classes: the classes of the operations to visit.

    Raises:
        TileError: a pattern refuses the kernel.
    """
    first_match = patterns[0] if len(patterns) == 1 else GreedyRewritePatternApplier(list(patterns), dce_enabled=False)
    operations = [op for op in root.walk() if isinstance(op, classes) and op is not root]
    if not operations:
        return
    erased: set[Operation] = set()
    rewriter = PatternRewriter(operations[0])
    rewriter.operation_removal_handler.append(lambda op: erased.update(op.walk()))
    for op in reversed(operations) if backward else operations:
        if op not in erased:
            rewriter.has_done_action = False
            rewriter.insertion_point = InsertPoint.before(op)
            first_match.match_and_rewrite(op, rewriter)


def insert_for(source: Operation, op: OpT, rewriter: PatternRewriter) -> OpT:
    """Inserts an operation at the rewriter's insertion point, with the source location and the remarks of ``source``.

    The insertion point of a pattern is before the matched operation unless the pattern moves it.
    """
    op.location = source.location
    return rewriter.insert(op)


__all__ = ["apply_patterns", "insert_for"]
