"""Local stages: what learns or chooses the kernels that turn signals and images into counts."""
