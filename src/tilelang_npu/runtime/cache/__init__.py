"""The kernel cache: entries in memory and on disk, who may write them, and the keys under which kernels are found."""
