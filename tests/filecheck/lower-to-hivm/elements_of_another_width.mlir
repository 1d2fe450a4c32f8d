// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A buffer that is also viewed with elements of another width is allocated as bytes, without gaps between its rows; each
// element type has a view of these bytes. A slice of such a view starts at its byte offset.
// CHECK: %[[BYTES:.*]] = memref.alloc() : memref<160xi8, #hivm.address_space<ub>>
// CHECK: %[[HALVES:.*]] = memref.view %[[BYTES]][%c0][] : memref<160xi8, {{.*}}> to memref<8x10xf16, #hivm.address_space<ub>>
// CHECK: %[[WORDS:.*]] = memref.view %[[BYTES]][%c0][] : memref<160xi8, {{.*}}> to memref<40xi32, #hivm.address_space<ub>>
// CHECK: %[[PART:.*]] = memref.subview %[[WORDS]][8] [16] [1]
// CHECK: hivm.hir.vbrc ins({{.*}}) outs(%[[PART]] :
// CHECK: %[[AGAIN:.*]] = memref.view %[[BYTES]][%c32][] : memref<160xi8, {{.*}}> to memref<64xi8, #hivm.address_space<ub>>
// CHECK: hivm.hir.vbrc ins({{.*}}) outs(%[[AGAIN]] :
func.func @k(%X: memref<8x10xf16, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i8
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<8x10xf16, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<8x10xf16, #hivm.address_space<gm>> to memref<8x10xf16, #hivm.address_space<ub>>
    %flat = tile.view %x : memref<8x10xf16, #hivm.address_space<ub>> to memref<80xf16, #hivm.address_space<ub>>
    %words = tile.view %flat : memref<80xf16, #hivm.address_space<ub>> to memref<40xi32, #hivm.address_space<ub>>
    %part = tile.region %words [8] [16] keep [0] : memref<40xi32, #hivm.address_space<ub>> to memref<16xi32, strided<[1], offset: 8>, #hivm.address_space<ub>>
    tile.fill %one into %part : i32 into memref<16xi32, strided<[1], offset: 8>, #hivm.address_space<ub>>
    %bytes = tile.view %part : memref<16xi32, strided<[1], offset: 8>, #hivm.address_space<ub>> to memref<64xi8, #hivm.address_space<ub>>
    tile.fill %two into %bytes : i8 into memref<64xi8, #hivm.address_space<ub>>
  }
  return
}
