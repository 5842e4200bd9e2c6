"""Training of components: `learner` runs the loop, the passes over mini-batches are compiled."""
