// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A conversion of unsigned integers reads the tile as unsigned, and a conversion to unsigned integers writes such a tile.
// uint64 has no conversion from or to a float: the points are computed one by one.
// CHECK:      func.func @widened
// CHECK:      tile.copy %x to %{{.*}} round "rint" : memref<4x32xui16, {{.*}} to memref<4x32xi32
// CHECK:      func.func @rounded
// CHECK:      tile.copy %x to %y round "rint" : memref<4x32xf32, {{.*}} to memref<4x32xui8
// CHECK:      func.func @too_wide
// CHECK:      scf.for
// CHECK:      arith.uitofp
func.func @widened() {
  %x = tile.alloc "x" : memref<4x32xui16, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<4x32xi32, #hivm.address_space<ub>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xui16, #hivm.address_space<ub>>
    %s = builtin.unrealized_conversion_cast %v : ui16 to i16
    %w = arith.extui %s : i16 to i32
    memref.store %w, %y[%i, %j] : memref<4x32xi32, #hivm.address_space<ub>>
  }
  return
}
func.func @rounded() {
  %x = tile.alloc "x" : memref<4x32xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<4x32xui8, #hivm.address_space<ub>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #hivm.address_space<ub>>
    %r = math.roundeven %v : f32
    %b = arith.fptoui %r : f32 to i8
    %w = builtin.unrealized_conversion_cast %b : i8 to ui8
    memref.store %w, %y[%i, %j] : memref<4x32xui8, #hivm.address_space<ub>>
  }
  return
}
func.func @too_wide() {
  %x = tile.alloc "x" : memref<4x32xui64, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<4x32xf32, #hivm.address_space<ub>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<4x32xui64, #hivm.address_space<ub>>
    %s = builtin.unrealized_conversion_cast %v : ui64 to i64
    %w = arith.uitofp %s : i64 to f32
    memref.store %w, %y[%i, %j] : memref<4x32xf32, #hivm.address_space<ub>>
  }
  return
}
