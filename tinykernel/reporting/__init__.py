"""The report page of a model: description, accuracy and costs."""

from tinykernel.reporting.gathering import report_page
from tinykernel.reporting.page import ReportPage

__all__ = ["ReportPage", "report_page"]
