"""The kernel cache: its entries in memory and on disk, their authentication, and the keys under which kernels are found."""
