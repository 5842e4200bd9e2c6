"""The report page of a model: description, accuracy and costs."""

from tinykernel.reporting.page import ReportPage, report_page

__all__ = ["ReportPage", "report_page"]
