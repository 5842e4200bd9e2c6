"""`tune`: many trainings, and the best of them."""
