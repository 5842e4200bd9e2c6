"""From a float machine, a classifier or a pipeline to an integer model: see `conversion`."""
