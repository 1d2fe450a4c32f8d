"""What passes share: views of the IR, bounds of values, emitting ops, places in the source."""
