"""Trees: what they are called."""

from tinykernel.learn.announcement import TABLES, Announcement

TREES = Announcement(
    "trees",
    "boosted trees",
    (TABLES,),
    rank=2,
    options=("epochs",),
    forms={"tree": "one tree of at most 64 leaves for each output"},
)
