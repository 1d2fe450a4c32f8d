// RUN: tilelang-npu opt %s -p guard-l0 | filecheck %s
// The pass rebuilds the macro, which keeps its HF32 mode, its unit flags and its events.
// CHECK: hivm.hir.mmadL1 {enable_HF32, unit_flag_group_id = 3 : i64} ins({{.*}}) outs({{.*}}) sync_related_args(%[[FIVE:.*]], %[[NONE:.*]], %[[NONE]], %[[NONE]], %{{.*}}, %c0_i64, %c1_i64 : {{.*}}) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
func.func @k(%a: memref<2x1x16x8xf32, #hivm.address_space<cbuf>>, %c: memref<1x1x16x16xf32, #hivm.address_space<cc>>, %init: i1) {
  %c16 = arith.constant 16 : index
  %five = arith.constant 5 : i64
  %none = arith.constant -1 : i64
  hivm.hir.mmadL1 {enable_HF32, unit_flag_group_id = 3 : i64} ins(%a, %a, %init, %c16, %c16, %c16 : memref<2x1x16x8xf32, #hivm.address_space<cbuf>>, memref<2x1x16x8xf32, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) sync_related_args(%five, %none, %none, %none, %none, %none, %none : i64, i64, i64, i64, i64, i64, i64) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
  return
}
