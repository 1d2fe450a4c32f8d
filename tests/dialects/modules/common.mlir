// The ops of MLIR's own dialects that kernels use around HIVM, in the spelling of LLVM 19.
module {
  func.func private @outside(i32, memref<?xf32>) -> f32
  func.func @scalars(%a: i32, %b: i32, %x: f32, %y: f32, %n: index) -> (i32, f32) {
    %c = arith.constant 7 : i32
    %m = arith.constant -1 : i64
    %half = arith.constant 5.000000e-01 : f32
    %third = arith.constant 0.333333343 : f32
    %inf = arith.constant 0x7F800000 : f32
    %nan = arith.constant 0x7E00 : f16
    %yes = arith.constant true
    %no = arith.constant false
    %0 = arith.addi %a, %b : i32
    %1 = arith.subi %0, %c overflow<nsw> : i32
    %2 = arith.muli %1, %c : i32
    %3 = arith.divsi %2, %c : i32
    %4 = arith.remsi %3, %c : i32
    %5 = arith.ceildivsi %4, %c : i32
    %6 = arith.floordivsi %5, %c : i32
    %7 = arith.andi %6, %c : i32
    %8 = arith.ori %7, %c : i32
    %9 = arith.xori %8, %c : i32
    %10 = arith.shli %9, %c : i32
    %11 = arith.shrsi %10, %c : i32
    %12 = arith.shrui %11, %c : i32
    %13 = arith.maxsi %12, %c : i32
    %14 = arith.minui %13, %c : i32
    %15 = arith.cmpi slt, %14, %c : i32
    %16 = arith.cmpf ogt, %x, %y : f32
    %17 = arith.select %15, %14, %c : i32
    %18 = arith.addf %x, %y : f32
    %19 = arith.subf %18, %half : f32
    %20 = arith.mulf %19, %third fastmath<contract> : f32
    %21 = arith.divf %20, %x : f32
    %22 = arith.maximumf %21, %x : f32
    %23 = arith.minnumf %22, %x : f32
    %24 = arith.negf %23 : f32
    %25 = arith.truncf %24 : f32 to f16
    %26 = arith.extf %25 : f16 to f32
    %27 = arith.sitofp %17 : i32 to f32
    %28 = arith.uitofp %17 : i32 to f32
    %29 = arith.fptosi %27 : f32 to i32
    %30 = arith.extsi %29 : i32 to i64
    %31 = arith.extui %29 : i32 to i64
    %32 = arith.trunci %30 : i64 to i32
    %33 = arith.bitcast %32 : i32 to f32
    %34 = arith.index_cast %n : index to i64
    %35 = arith.index_cast %31 : i64 to index
    %36 = arith.ceildivui %n, %35 : index
    %37 = math.exp %33 : f32
    %38 = math.sqrt %37 : f32
    %39 = math.absf %38 : f32
    %40 = math.fma %39, %38, %37 : f32
    return %32, %40 : i32, f32
  }
  func.func @control(%lower: index, %upper: index, %step: index, %c: i1, %x: f32) -> f32 {
    %0 = scf.for %i = %lower to %upper step %step iter_args(%sum = %x) -> (f32) {
      %1 = scf.if %c -> (f32) {
        %2 = arith.addf %sum, %x : f32
        scf.yield %2 : f32
      } else {
        scf.yield %sum : f32
      }
      scf.yield %1 : f32
    }
    scf.for %i_1 = %lower to %upper step %step {
      scf.if %c {
        %3 = arith.addi %i_1, %step : index
      }
    }
    %4 = scf.while (%v = %0) : (f32) -> f32 {
      scf.condition(%c) %v : f32
    } do {
    ^bb0(%w: f32):
      scf.yield %w : f32
    }
    cf.cond_br %c, ^bb1, ^bb2(%4 : f32)
  ^bb1:
    %5 = call @more(%4) : (f32) -> f32
    cf.br ^bb2(%5 : f32)
  ^bb2(%r: f32):
    return %r : f32
  }
  func.func @more(%x: f32) -> f32 {
    return %x : f32
  }
  func.func @memory(%m: memref<4x8xf32>, %d: memref<?x?xf32, strided<[?, 1], offset: ?>>, %bytes: memref<?xi8>, %i: index, %n: index) {
    %c0 = arith.constant 0 : index
    %0 = memref.alloc() : memref<4x8xf32>
    %1 = memref.alloc(%n, %i) : memref<?x?xf32>
    %2 = memref.alloca() : memref<4xf32>
    %3 = memref.dim %d, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
    %4 = memref.subview %m[0, %i] [2, %n] [1, 1] : memref<4x8xf32> to memref<2x?xf32, strided<[8, 1], offset: ?>>
    %5 = memref.subview %m[1, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: 8>>
    %6 = memref.view %bytes[%i][%n] : memref<?xi8> to memref<?x8xf32>
    %7 = memref.reinterpret_cast %m to offset: [%i], sizes: [4, %n], strides: [8, 1] : memref<4x8xf32> to memref<4x?xf32, strided<[8, 1], offset: ?>>
    %8 = memref.cast %m : memref<4x8xf32> to memref<?x8xf32>
    %9 = memref.memory_space_cast %m : memref<4x8xf32> to memref<4x8xf32, 1>
    %10 = memref.load %m[%c0, %i] : memref<4x8xf32>
    memref.store %10, %0[%c0, %c0] : memref<4x8xf32>
    memref.copy %m, %0 : memref<4x8xf32> to memref<4x8xf32>
    memref.dealloc %0 : memref<4x8xf32>
    return
  }
  func.func @values(%t: tensor<4x8xf32>, %i: index, %x: f32) -> tensor<2x8xf32> {
    %0 = tensor.empty() : tensor<4x8xf32>
    %1 = tensor.empty(%i) : tensor<?x8xf32>
    %2 = tensor.extract_slice %t[0, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
    %3 = tensor.insert_slice %2 into %0[%i, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>
    %4 = tensor.dim %1, %i : tensor<?x8xf32>
    %5 = tensor.extract %3[%i, %i] : tensor<4x8xf32>
    %6 = tensor.insert %5 into %3[%i, %i] : tensor<4x8xf32>
    return %2 : tensor<2x8xf32>
  }
}
