"""How models learn: training sets, loss, loop, and the numerics of each part."""
