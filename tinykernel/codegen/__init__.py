"""From an `IntegerModel` to C: targets, packing, literals, sources and project formats."""
