"""The attributes of a generic op that are given by an alias."""

from __future__ import annotations

import pytest

from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError

OP = """\
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = linalg.generic {} ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) {} {{
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }} -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}
"""
TRAIT = '{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], doc = "copies"}'


@pytest.mark.parametrize("more", ["", "attrs = {tag}"])
def test_attributes_given_by_an_alias(more: str) -> None:
    written = print_module(parse_module(OP.format(TRAIT, more)))
    assert 'iterator_types = ["parallel"], doc = "copies"}' in written
    assert ("tag" in written) is bool(more)
    assert print_module(parse_module(f"#trait = {TRAIT}\n" + OP.format("#trait", more))) == written
    assert print_module(parse_module(written)) == written
    assert print_module(parse_module(print_module(parse_module(written), generic=True))) == written


@pytest.mark.parametrize(("alias", "message"), [
    ("#trait = 1 : i32\n", "expected a dictionary of attributes"), ("", "undefined symbol alias '#trait'"),
    ("#trait = {iterator_types = []}\n", "Expected indexing_maps for linalg.generic")])
def test_aliases_of_something_else(alias: str, message: str) -> None:
    with pytest.raises(TileError) as caught:
        parse_module(alias + OP.format("#trait", ""))
    assert (caught.value.code, caught.value.message) == ("T601", message)
    assert caught.value.location is not None
    assert caught.value.location.line == 2 + bool(alias)
