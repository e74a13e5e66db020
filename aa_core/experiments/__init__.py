"""Training that goes on from a changed state: what a mechanism is good for while it is learned."""
