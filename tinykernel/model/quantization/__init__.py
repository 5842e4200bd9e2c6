"""From floats, a classifier or a pipeline to an integer model."""
