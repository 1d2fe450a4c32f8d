// Maps with products of symbols and divisions by them.
module {
  func.func @semi_affine(%i: index, %n: index, %m: index) -> index {
    %0 = affine.apply affine_map<(d0)[s0] -> ((d0 * s0))>(%i)[%n]
    %1 = affine.apply affine_map<()[s0, s1] -> ((s0 floordiv (s1 + 1)))>()[%n, %m]
    %2 = affine.apply affine_map<(d0)[s0, s1] -> (((d0 ceildiv (s0 * s1)) + (d0 mod s1)))>(%0)[%1, %m]
    %3 = affine.apply affine_map<()[s0, s1] -> (((s0 * 2) + ((s0 * s1) * -2)))>()[%2, %m]
    return %3 : index
  }
}
