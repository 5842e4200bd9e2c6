"""The name by which pickled models call for their reader. Files on disk hold it: it must stay."""

from tinykernel.model.file import _from_bytes as _from_bytes
