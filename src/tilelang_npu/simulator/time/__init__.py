"""When steps happen: their cycles, their order, the timing of a block, traffic between cores."""
