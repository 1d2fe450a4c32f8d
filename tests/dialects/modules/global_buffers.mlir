// Buffers of the module with a name, and other views: without a rank, in a shape that another buffer lists.
module {
  memref.global "private" constant @table : memref<2x2xf32> = dense<[[1.000000e+00, -2.000000e+00], [0.000000e+00, 4.000000e+00]]> {alignment = 32 : i64}
  memref.global "private" constant @same : memref<8xi16> = dense<7>
  memref.global @room : memref<3xi64> = uninitialized
  memref.global "nested" @elsewhere : memref<3xi64> {tag}
  func.func @views(%m: memref<*xf16>, %b: memref<2x8xi16>, %n: index) -> index {
    %0 = memref.get_global @table : memref<2x2xf32>
    %1 = memref.get_global @elsewhere : memref<3xi64>
    %2 = memref.rank %m : memref<*xf16>
    %3 = memref.reinterpret_cast %m to offset: [%n], sizes: [8], strides: [1] : memref<*xf16> to memref<8xf16, strided<[1], offset: ?>>
    %4 = memref.reshape %b(%1) : (memref<2x8xi16>, memref<3xi64>) -> memref<2x2x4xi16>
    %5 = memref.reshape %m(%1) : (memref<*xf16>, memref<3xi64>) -> memref<*xf16>
    %6 = memref.extract_aligned_pointer_as_index %4 : memref<2x2x4xi16> -> index
    return %6 : index
  }
}
