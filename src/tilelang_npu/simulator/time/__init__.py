"""The timing model: the cycles of each step (one action of an op on one pipe), the order of the steps, the times of a block,
and the bandwidth of GM, which all cores share."""
