"""The parts of `tinykernel.model.quantize`: inputs, phase windows, and what rounding does."""
