"""The page to hand on: what a model is, how good it is, and what it takes."""

from tinykernel.reporting.page import ReportPage, report_page

__all__ = ["ReportPage", "report_page"]
