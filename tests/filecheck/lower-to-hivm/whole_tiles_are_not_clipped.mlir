// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// The number of tiles of 16 rows is n // 16: none needs to be clipped, also in a loop with two more iterations, whose loads
// are in a branch. One more tile needs to be clipped.
// CHECK-LABEL: @whole
// CHECK-COUNT-2: memref.subview %A_1[%{{.*}}, 0] [16, 64] [1, 1]
// CHECK-LABEL: @one_more
// CHECK:       memref.subview %A_1[%{{.*}}, 0] [%{{.*}}, 64] [1, 1]
func.func @whole(%A: memref<?xf32, #hivm.address_space<gm>>, %n: index) {
  %X = tile.tensor %A [%n, 64] : memref<?xf32, #hivm.address_space<gm>> to memref<?x64xf32, #hivm.address_space<gm>>
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %whole = arith.divui %n, %c16 : index
    %end = arith.addi %whole, %c0 : index
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %end step %c1 {
      %row = arith.muli %i, %c16 : index
      %r = tile.region %X[%row, 0] [16, 64] keep [0, 1] : memref<?x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %r to %x : memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
    }
    %on = arith.addi %end, %c2 : index
    scf.for %t = %c0 to %on step %c1 {
      %early = arith.cmpi slt, %t, %end : index
      scf.if %early {
        %last = arith.subi %end, %c1 : index
        %least = arith.minsi %t, %last : index
        %j = arith.maxsi %least, %c0 : index
        %row = arith.muli %j, %c16 : index
        %r = tile.region %X[%row, 0] [16, 64] keep [0, 1] : memref<?x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %r to %x : memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
      }
    }
  }
  return
}
func.func @one_more(%A: memref<?xf32, #hivm.address_space<gm>>, %n: index) {
  %X = tile.tensor %A [%n, 64] : memref<?xf32, #hivm.address_space<gm>> to memref<?x64xf32, #hivm.address_space<gm>>
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %whole = arith.divui %n, %c16 : index
    %end = arith.addi %whole, %c1 : index
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %end step %c1 {
      %row = arith.muli %i, %c16 : index
      %r = tile.region %X[%row, 0] [16, 64] keep [0, 1] : memref<?x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %r to %x : memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
    }
  }
  return
}
