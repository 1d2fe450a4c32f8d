"""The lines of a printed module with the locations and the comments of their ops."""

from __future__ import annotations

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.dialects.text.located_lines import LocatedLine, located_lines

TEXT = """module {
  func.func @f() {
    hivm.hir.pipe_barrier[<PIPE_ALL>] loc("a (1).py":7:3)
    hivm.hir.pipe_barrier[<PIPE_V>] loc(callsite("d.py":4:1 at "e.py":2:2))
    hivm.hir.pipe_barrier[<PIPE_S>] loc(unknown)
    func.return
  }
}
"""


def test_each_line_has_the_location_of_its_op() -> None:
    module = parse_module(TEXT, "m.mlir")
    found = {line.text.strip(): (line.file, line.line, line.note)
             for line in located_lines(print_module(module, locations=True))}
    assert found["hivm.hir.pipe_barrier[<PIPE_ALL>]"] == ("a (1).py", 7, "")
    assert found["hivm.hir.pipe_barrier[<PIPE_V>]"] == ("d.py", 4, ""), "the line of the macro, not of its call"
    assert found["hivm.hir.pipe_barrier[<PIPE_S>]"][2] == ""


def test_the_text_is_that_without_locations() -> None:
    module = parse_module(TEXT, "m.mlir")
    lines = [line.text for line in located_lines(print_module(module, locations=True))]
    assert lines == print_module(module).splitlines()


def test_a_comment_is_separated_from_the_line_of_its_op() -> None:
    module = parse_module(TEXT, "m.mlir")
    barrier = next(op for op in module.walk() if op.name == "hivm.hir.pipe_barrier")
    lines = list(located_lines(print_module(module, locations=True, notes={barrier: "0.250"})))
    assert [line for line in lines if line.note] == [
        LocatedLine("    hivm.hir.pipe_barrier[<PIPE_ALL>]", "a (1).py", 7, "0.250")]
