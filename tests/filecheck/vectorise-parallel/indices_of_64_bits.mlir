// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// An index that exceeds int32 is computed in int64, unless only its low 32 bits are stored. A row is converted as a row.
// CHECK:      func.func @wide
// CHECK:      tile.call "arange" {{.*}} outs(%{{.*}} : memref<1x32xi64
// CHECK:      tile.elementwise "add" ins(%x, %{{.*}} : memref<4x32xi64, {{.*}}, memref<1x32xi64
// CHECK:      func.func @low_bits
// CHECK:      tile.copy %x to %{{.*}} round "truncwithoverflow" : memref<4x32xi64, {{.*}} to memref<4x32xi32
// CHECK:      tile.elementwise "add" ins({{.*}} : memref<4x32xi32, {{.*}}, memref<1x32xi32
// CHECK:      func.func @row
// CHECK:      tile.copy %{{.*}} to %{{.*}} round "rint" : memref<1x32xi8, {{.*}} to memref<1x32xi32
// CHECK:      tile.elementwise "add" ins({{.*}} : memref<1x32xi32, {{.*}}, memref<4x1xi32
func.func @wide() {
  %x = tile.alloc "x" : memref<4x32xi64, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<4x32xi64, #hivm.address_space<ub>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xi64, #hivm.address_space<ub>>
    %a = arith.index_cast %v : i64 to index
    %b = arith.addi %a, %j : index
    %w = arith.index_cast %b : index to i64
    memref.store %w, %y[%i, %j] : memref<4x32xi64, #hivm.address_space<ub>>
  }
  return
}
func.func @low_bits() {
  %x = tile.alloc "x" : memref<4x32xi64, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<4x32xi32, #hivm.address_space<ub>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xi64, #hivm.address_space<ub>>
    %a = arith.index_cast %v : i64 to index
    %b = arith.addi %a, %j : index
    %w = arith.index_cast %b : index to i32
    memref.store %w, %y[%i, %j] : memref<4x32xi32, #hivm.address_space<ub>>
  }
  return
}
func.func @row() {
  %x = tile.alloc "x" : memref<48xi8, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<4x32xi32, #hivm.address_space<ub>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%j] : memref<48xi8, #hivm.address_space<ub>>
    %a = arith.index_cast %v : i8 to index
    %b = arith.addi %a, %i : index
    %w = arith.index_cast %b : index to i32
    memref.store %w, %y[%i, %j] : memref<4x32xi32, #hivm.address_space<ub>>
  }
  return
}
