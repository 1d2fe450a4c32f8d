"""The arguments of a call: the caller's arrays, how they are bound to parameters, and which of them are the same memory."""
