"""The page to hand on: what a model is, how good it is, and what it takes."""

from tinykernel.reporting.gathering import report_page
from tinykernel.reporting.page import ReportPage

__all__ = ["ReportPage", "report_page"]
