"""The training of components: `learner` leads, in passes over mini-batches that are compiled."""
