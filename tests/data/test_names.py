"""Labels and groups in the names of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinykernel.data.recordings.names import NamePattern


@pytest.mark.parametrize("field", ["1", "\u00b2"])
def test_field_of_a_name_that_is_no_name_of_python(field):
    """{1} and {\u00b2} in --name ended in a traceback of the module of regular expressions."""
    text, path = f"{{{field}}}_{{label}}", Path("7_yes.wav")
    assert NamePattern(text).find(path) == ("yes", None)
    assert NamePattern(text, group=field).find(path) == ("yes", "7")
