# SPDX-License-Identifier: Apache-2.0
"""`pio test`: runs the self-test of this project and reads the lines that it prints."""

import click
from platformio.test.result import TestCase, TestStatus
from platformio.test.runners.base import TestRunnerBase

_RESULTS = {"PASS: ": TestStatus.PASSED, "FAIL: ": TestStatus.FAILED}


class CustomTestRunner(TestRunnerBase):
    """Read the result from a line "PASS: ..." or "FAIL: ..."; a line "TIME: ..." is the last."""

    def on_testing_line_output(self, line):
        """Print a line and look for a result in it."""
        click.echo(line, nl=False)
        text = line.strip()
        for start, status in _RESULTS.items():
            if text.startswith(start) and not self.test_suite.cases:
                case = TestCase(name="test vectors", status=status, message=text)
                self.test_suite.add_case(case)
        if text.startswith("TIME: ") and self.test_suite.cases:
            self.test_suite.on_finish()

    def teardown(self):
        """Report a program that ended without a result."""
        if not self.test_suite.cases:
            error = RuntimeError("the program printed neither PASS nor FAIL")
            case = TestCase(name="test vectors", status=TestStatus.ERRORED, exception=error)
            self.test_suite.add_case(case)
