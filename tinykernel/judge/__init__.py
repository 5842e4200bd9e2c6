"""Judge models: accuracy and its interval, baselines, cautions, events, drift."""
