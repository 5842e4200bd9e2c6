"""PlatformIO without its registry, for the tests that run it."""

import json

import pytest

SCONS = "4.41101.0"  # what PlatformIO calls SCons 4.11.1


@pytest.fixture(scope="session")
def platformio_offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment: a core folder that holds SCons, so that nothing is downloaded."""
    core = tmp_path_factory.mktemp("platformio")
    package = core / "packages" / "tool-scons"
    package.mkdir(parents=True)
    (package / "scons.py").write_text("import SCons.Script\n\nSCons.Script.main()\n")
    (package / "package.json").write_text(json.dumps({"name": "tool-scons", "version": SCONS}))
    spec = {
        "owner": "platformio",
        "id": None,
        "name": "tool-scons",
        "requirements": None,
        "uri": None,
    }
    description = {"type": "tool", "name": "tool-scons", "version": SCONS, "spec": spec}
    (package / ".piopm").write_text(json.dumps(description))
    (package / ".piokeep").write_text("")
    return {
        "PLATFORMIO_CORE_DIR": str(core),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "No",
        "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "9999",
    }
