"""Modelled time: the cost of steps, their order, the timing of a block, and GM traffic that cores share."""
