// Loops whose iterations have no order: over numbers and values, with results that they share or fold, and nested.
module {
  func.func @rows(%t: tensor<4x8xf32>, %row: tensor<8xf32>, %n: index) -> tensor<4x8xf32> {
    %0 = scf.forall (%i) in (4) shared_outs(%o = %t) -> (tensor<4x8xf32>) {
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %row into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
      }
    }
    return %0 : tensor<4x8xf32>
  }
  func.func @stores(%m: memref<64x64xf32>, %n: index, %x: f32) -> (f32, i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : i32
    scf.forall (%i, %j) in (%n, 16) {
      memref.store %x, %m[%i, %j] : memref<64x64xf32>
    } {mapping = [], tag}
    scf.forall (%i_1) = (1) to (%n) step (2) {
      scf.forall (%j_1) = (%i_1) to (64) step (%n) {
        memref.store %x, %m[%i_1, %j_1] : memref<64x64xf32>
      }
    }
    scf.parallel (%k) = (%c0) to (%n) step (%c1) {
      memref.store %x, %m[%k, %k] : memref<64x64xf32>
      scf.reduce
    }
    %0 = scf.parallel (%a, %b) = (%c0, %c0) to (%n, %n) step (%c1, %c1) init (%x) -> f32 {
      %1 = memref.load %m[%a, %b] : memref<64x64xf32>
      scf.reduce(%1 : f32) {
      ^bb0(%left: f32, %right: f32):
        %2 = arith.addf %left, %right : f32
        scf.reduce.return %2 : f32
      }
    } {name = "sum"}
    %3, %4 = scf.parallel (%a_1) = (%c0) to (%n) step (%c1) init (%x, %c7) -> (f32, i32) {
      scf.reduce(%x, %c7 : f32, i32) {
      ^bb0(%one: f32, %other: f32):
        scf.reduce.return %one : f32
      }, {
      ^bb0(%one_1: i32, %other_1: i32):
        scf.reduce.return %other_1 : i32
      }
    }
    return %0, %4 : f32, i32
  }
}
