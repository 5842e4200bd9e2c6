"""A linear part alone: what it is called."""

from tinykernel.learn.announcement import TABLES, Announcement

LINEAR = Announcement("linear", "a linear part alone", (TABLES,), 1, options=("epochs",))
