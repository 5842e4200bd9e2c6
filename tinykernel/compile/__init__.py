"""From an `IntegerModel` to C: targets, layout, sources and project formats."""
