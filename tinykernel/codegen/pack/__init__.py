"""How each stage of a model lies in flash, scratch and state: one file a stage."""
