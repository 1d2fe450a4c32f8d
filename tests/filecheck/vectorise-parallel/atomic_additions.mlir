// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// Each point adds to a separate element: the tile is added at once. If points share an element, each adds a tile of one
// element.
// CHECK:      tile.copy %x to %C atomic "add" :
// CHECK:      scf.for %i
// CHECK-NEXT:   scf.for %j
// CHECK:          %[[E:[a-z0-9_]+]] = tile.alloc "added" : memref<1xf32, #hivm.address_space<ub>>
// CHECK:          memref.store {{%.*}}, %[[E]]
// CHECK:          %[[P:[a-z0-9_]+]] = tile.region %S[%i] [1]
// CHECK-NEXT:     tile.copy %[[E]] to %[[P]] atomic "add" :
func.func @k(%C: memref<8x16xf32, #hivm.address_space<gm>>, %S: memref<8xf32, #hivm.address_space<gm>>) {
  %x = tile.alloc "x" : memref<8x16xf32, #tile.scope<shared>>
  tile.parallel [8, 16] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x16xf32, #tile.scope<shared>>
    memref.store %a, %C[%i, %j] {tile.atomic = "add"} : memref<8x16xf32, #hivm.address_space<gm>>
  }
  tile.parallel [8, 16] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x16xf32, #tile.scope<shared>>
    memref.store %a, %S[%i] {tile.atomic = "add"} : memref<8xf32, #hivm.address_space<gm>>
  }
  return
}
