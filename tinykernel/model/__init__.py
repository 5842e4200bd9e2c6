"""The integer model: a chain of pieces, proofs, answers, quantization, and its file."""
