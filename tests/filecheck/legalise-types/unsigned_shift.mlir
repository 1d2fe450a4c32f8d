// RUN: tilelang-npu opt %s -p legalise-types | filecheck %s
// A shift has only signed elements: its operand is a signed view of the same bytes, and the attribute states whether they
// are read as unsigned.
// CHECK:      tile.view %x : memref<8xui16, #hivm.address_space<ub>> to memref<8xi16, #hivm.address_space<ub>>
// CHECK:      tile.view %y : memref<8xui16, #hivm.address_space<ub>> to memref<8xi16, #hivm.address_space<ub>>
// CHECK:      tile.elementwise "bitwise_rshift" ins(%{{.*}}, %n : memref<8xi16, #hivm.address_space<ub>>, i16)
// CHECK-SAME: is_signed = false
// CHECK-NOT:  unrealized_conversion_cast
func.func @k(%x: memref<8xui16, #hivm.address_space<ub>>, %y: memref<8xui16, #hivm.address_space<ub>>, %n: i16) {
  %u = builtin.unrealized_conversion_cast %n : i16 to ui16
  tile.elementwise "bitwise_rshift" ins(%x, %u : memref<8xui16, #hivm.address_space<ub>>, ui16) outs(%y : memref<8xui16, #hivm.address_space<ub>>) {is_signed = false, round = false}
  return
}
