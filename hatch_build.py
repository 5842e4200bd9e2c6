"""The metadata that name the place of the project: PROJECT_URL, which continuous integration sets.

Without it they have no addresses, and the links of the README stay relative.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class CustomMetadataHook(MetadataHookInterface):
    """Addresses, and a README whose links and pictures also work on the page of an index."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the dynamic fields of pyproject.toml."""
        root, url = Path(self.root), os.environ.get("PROJECT_URL", "").rstrip("/")
        text, metadata["urls"] = (root / "README.md").read_text(encoding="utf-8"), {}
        if url:
            resolved = runpy.run_path(str(root / ".ci" / "site.py"))["resolved"]
            text = resolved(text, Path("README.md"), set(), url)
            files = {"Documentation": "README.md", "Changelog": "CHANGELOG.md"}
            metadata["urls"] = {name: f"{url}/blob/HEAD/{file}" for name, file in files.items()}
            metadata["urls"] |= {"Source": url, "Issues": f"{url}/issues"}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
