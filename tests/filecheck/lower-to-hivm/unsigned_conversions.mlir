// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// Conversions that vcast does not have use a wider signed integer, whose upper bits are cleared or whose value is clamped to
// the range. uint8 is converted through float16, which rounds to odd, so that the number is rounded only once.
// CHECK:      hivm.hir.bitcast %[[SHORT:.*]] : memref<4x32xui16, {{.*}} -> memref<4x32xi16
// CHECK-NEXT: hivm.hir.vcast ins(%{{.*}} : memref<4x32xi16, {{.*}}) outs(%[[WIDE:.*]] : memref<4x32xi32, #hivm.address_space<ub>>)
// CHECK:      hivm.hir.vshl ins(%[[WIDE]], %c16_i32 {{.*}} outs(%[[WIDE]]
// CHECK-NEXT: hivm.hir.vshr ins(%[[WIDE]], %c16_i32 {{.*}} outs(%[[WIDE]] {{.*}} round : false is_signed : false
// CHECK:      hivm.hir.vcast ins(%{{.*}} : memref<4x32xf32, {{.*}}) outs(%[[FLOOR:.*]] : memref<4x32xi32, #hivm.address_space<ub>>) round_mode = <floor>
// CHECK:      hivm.hir.vmax ins(%[[FLOOR]], %c0_i32
// CHECK:      hivm.hir.vmin ins(%[[FLOOR]], %c65535_i32
// CHECK-NEXT: hivm.hir.vcast ins(%[[FLOOR]] {{.*}} outs(%{{.*}} : memref<4x32xi16, {{.*}} round_mode = <truncwithoverflow>
// CHECK:      hivm.hir.vcast {{.*}} outs(%[[ODD:.*]] : memref<4x32xf16, {{.*}} round_mode = <odd>
// CHECK-NEXT: hivm.hir.vcast ins(%[[ODD]] {{.*}} outs(%{{.*}} : memref<4x32xui8, {{.*}} cast = <cast_unsigned>
func.func @k() {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%cid: index):
    %short = tile.alloc "short" : memref<4x32xui16, #hivm.address_space<ub>>
    %word = tile.alloc "word" : memref<4x32xi32, #hivm.address_space<ub>>
    %float = tile.alloc "float" : memref<4x32xf32, #hivm.address_space<ub>>
    %byte = tile.alloc "byte" : memref<4x32xui8, #hivm.address_space<ub>>
    tile.copy %short to %word : memref<4x32xui16, #hivm.address_space<ub>> to memref<4x32xi32, #hivm.address_space<ub>>
    tile.copy %float to %short round "floor" : memref<4x32xf32, #hivm.address_space<ub>> to memref<4x32xui16, #hivm.address_space<ub>>
    tile.copy %float to %byte : memref<4x32xf32, #hivm.address_space<ub>> to memref<4x32xui8, #hivm.address_space<ub>>
  }
  return
}
