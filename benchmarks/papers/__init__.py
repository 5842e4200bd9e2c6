"""The tables and figures of the source papers, run again on real data.

``python -m benchmarks.papers all --data DIR`` writes one Markdown page a paper, with its figures,
into ``docs/results``.
"""
