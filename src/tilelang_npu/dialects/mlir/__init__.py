"""MLIR's own dialects in the spelling of LLVM 19: the ops that xDSL lacks, and the rules of MLIR that xDSL does not check."""
