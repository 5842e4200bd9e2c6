"""What the exported library says of itself to build systems, against the rules of each of them.

Arduino: the rules of arduino-lint that a folder can be judged by; those about a registry, a
network, fields or files that no template has are not here. CMSIS-Pack: PACK.xsd 1.7. Kconfig and
the manifest of PlatformIO: their own readers.
"""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.random_models import random_model
from tinykernel.compile.projects import export

NAMES = ["gesture", "a_name_of_forty_letters_is_the_longest_o"]
SEMVER = r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
CATEGORIES = {
    *("Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing"),
    *("Data Storage", "Data Processing", "Other"),
}
REQUIRED = {
    *("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url"),
    "architectures",
}
FIELDS = REQUIRED | {"depends", "dot_a_linkage", "includes", "precompiled", "ldflags"}


@pytest.fixture(scope="module", params=NAMES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an exported library."""
    folder = tmp_path_factory.mktemp("library") / request.param
    model = random_model(1, n_classes=4, raw_dtype="float32")
    export(model, None, folder, name=request.param, format="library")
    return folder


def properties(folder: Path) -> dict[str, str]:
    """Read library.properties: lines KEY=VALUE."""
    lines = (folder / "library.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def names(folder: Path) -> set[str]:
    """Return the names in the root folder."""
    return {path.name for path in folder.iterdir()}


def misspelt(folder: Path, name: str) -> bool:
    """Say whether the root holds something nearly called so."""
    near = re.compile(f"{name.rstrip('s')}s?", re.IGNORECASE)
    return any(near.fullmatch(found) and found != name for found in names(folder))


def sketches(folder: Path) -> list[Path]:
    """Return the sketches of a library."""
    return sorted(folder.rglob("*.ino"))


ARDUINO: dict[str, Callable[[Path, dict[str, str]], bool]] = {
    "LS001 is a library": lambda f, p: (f / "src").is_dir() and any((f / "src").glob("*.h")),
    "LS002 folder name not too long": lambda f, p: len(f.name) <= 63,
    "LS003 characters of the folder name": lambda f, p: bool(
        re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", f.name)
    ),
    "LS005 no symbolic link": lambda f, p: not any(path.is_symlink() for path in f.rglob("*")),
    "LS008 a header is called as the library": lambda f, p: (f / "src" / f"{p['name']}.h").exists(),
    "LS009 src in small letters": lambda f, p: not misspelt(f, "src"),
    "LP001 library.properties": lambda f, p: bool(p),
    "LP003 its case": lambda f, p: "library.properties" in names(f),
    "LP004 only one": lambda f, p: len(list(f.rglob("library.properties"))) == 1,
    "LP005 lines KEY=VALUE": lambda f, p: all(
        re.fullmatch(r"[a-z_]+=\S.*", line)
        for line in (f / "library.properties").read_text().splitlines()
    ),
    "LP006 no field misspelt": lambda f, p: set(p) <= FIELDS,
    "LP007 and others: fields there": lambda f, p: set(p) >= REQUIRED,
    "LP008 and others: not empty": lambda f, p: all(p.values()),
    "LP009 name not too long": lambda f, p: len(p["name"]) <= 63,
    "LP011 characters of the name": lambda f, p: bool(
        re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", p["name"])
    ),
    "LP014 nor contain it": lambda f, p: "arduino" not in p["name"].lower(),
    "LP015 no space in the name": lambda f, p: " " not in p["name"],
    "LP016 nor the word library": lambda f, p: "library" not in p["name"].lower(),
    "LP021 version is semantic": lambda f, p: bool(re.fullmatch(SEMVER, p["version"])),
    "LP036 paragraph does not repeat it": lambda f, p: p["sentence"] not in p["paragraph"],
    "LP038 category is one of Arduino's": lambda f, p: p["category"] in CATEGORIES,
    "LP041 url is a URL": lambda f, p: bool(re.fullmatch(r"https?://[\w.-]+(/\S*)?", p["url"])),
    "LP044 architectures not empty": lambda f, p: all(p["architectures"].split(",")),
    "LP046 architectures in their case": lambda f, p: p["architectures"].islower(),
    "LP051 includes not empty": lambda f, p: all(p["includes"].split(",")),
    "LP052 includes are there": lambda f, p: all(
        (f / "src" / file).is_file() for file in p["includes"].split(",")
    ),
    "LC001 Arduino.h in its case": lambda f, p: (
        not any(
            re.search(r"(?i)arduino\.h", text) and "Arduino.h" not in text
            for text in (path.read_text() for path in f.rglob("*.[chi]*") if path.is_file())
        )
    ),
    "LD001 readme": lambda f, p: "README.md" in names(f),
    "LD002 licence": lambda f, p: "LICENSE" in names(f),
    "LD003 no sketch outside examples": lambda f, p: all(
        path.relative_to(f).parts[0] == "examples" for path in sketches(f)
    ),
    "LD004 an example": lambda f, p: bool(sketches(f)),
    "LD005 examples spelt so": lambda f, p: not misspelt(f, "examples"),
    "SS001 sketch is called as its folder": lambda f, p: all(
        path.stem == path.parent.name for path in sketches(f)
    ),
    "SS002 characters of sketch files": lambda f, p: all(
        re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", path.name)
        for sketch in sketches(f)
        for path in sketch.parent.iterdir()
    ),
    "SS003 sketch files not too long": lambda f, p: all(
        len(path.name) <= 63 for sketch in sketches(f) for path in sketch.parent.iterdir()
    ),
}


def test_arduino_lint(library: Path) -> None:
    """Arduino's library manager finds nothing to complain of."""
    fields = properties(library)
    assert [rule for rule, holds in ARDUINO.items() if not holds(library, fields)] == []


def test_processors_that_cannot_run_it_are_not_named(library: Path) -> None:
    """What no test runs on, the IDE must refuse, not the compiler."""
    found = set(properties(library)["architectures"].split(","))
    assert "avr" in found
    assert not {"megaavr", "*"} & found
    manifest = json.loads((library / "library.json").read_text())
    assert "atmelavr" in manifest["platforms"]
    assert "atmelmegaavr" not in manifest["platforms"]


def test_platformio_manifest(library, require_tool, monkeypatch):
    """PlatformIO's own schema accepts library.json; only its list of licences needs the network."""
    require_tool("platformio")
    from platformio.package.manifest.parser import ManifestParserFactory
    from platformio.package.manifest.schema import ManifestSchema

    licences = {"licenses": [{"licenseId": "Apache-2.0"}]}
    monkeypatch.setattr(ManifestSchema, "load_spdx_licenses", staticmethod(lambda: licences))
    parsed = ManifestParserFactory.new_from_file(str(library / "library.json")).as_dict()
    found = ManifestSchema().load_manifest(parsed)
    assert found["name"] == library.name
    assert found["headers"] == [f"{library.name}.h"]
    assert found["version"] == properties(library)["version"]


# PACK.xsd: types by pattern, elements by their attributes and children.
TEXT, RESTRICTED, URL = r"(?s).*\S.*", r"[-_A-Za-z0-9]+", r"https?://\S+"


def test_pack_description(library: Path) -> None:
    """A CMSIS-Pack tool finds the files that the description lists, and the version."""
    (file,) = library.glob("*.pdsc")
    root = ElementTree.parse(file).getroot()
    assert file.name == f"{root.findtext('vendor')}.{root.findtext('name')}.pdsc"
    listed = [node.attrib["name"] for node in root.iter("file")] + [root.findtext("license")]
    assert f"src/{library.name}.c" in listed
    for name in listed:
        assert (library / name).is_file(), name
    (release,) = root.iter("release")
    assert re.fullmatch(SEMVER, release.attrib["version"])


def read_yaml(file: Path) -> Any:
    """Read a YAML file."""
    from ruamel.yaml import YAML

    return YAML(typ="safe").load(file.read_text())


def test_zephyr_module_description(library: Path, require_tool: Callable[[str], Any]) -> None:
    """module.yml has the keys that Zephyr knows, and what they name is there."""
    require_tool("ruamel.yaml")
    found = read_yaml(library / "zephyr" / "module.yml")
    assert set(found) <= {"name", "build", "tests", "samples", "boards", "blobs"}
    assert set(found["build"]) <= {"cmake", "kconfig", "depends", "settings"}
    assert re.fullmatch(r"\w+", found["name"])
    assert (library / found["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (library / found["build"]["kconfig"]).is_file()
    for folder in found["samples"]:
        sample = read_yaml(library / folder / "sample.yaml")
        assert set(sample) == {"sample", "tests"}
        (test,) = sample["tests"].values()
        assert test["harness"] == "console"
        (line,) = test["harness_config"]["regex"]
        assert re.search(line, "PASS: 8 vectors, 32 scores equal")


def test_zephyr_options(library: Path, tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """Kconfig reads the option without a warning, off by default; the sample turns it on."""
    kconfiglib = require_tool("kconfiglib")
    (tmp_path / "Kconfig").write_text(
        f'osource "{library / "zephyr" / "Kconfig"}"\n'
        'config CONSOLE\n\tbool\n\tprompt "c"\nconfig PRINTK\n\tbool "p"\n'
        'config MAIN_STACK_SIZE\n\tint "m"\n'
    )
    tree = kconfiglib.Kconfig(str(tmp_path / "Kconfig"), warn_to_stderr=False)
    option = tree.syms[f"TINYKERNEL_{library.name.upper()}"]
    assert option.str_value == "n"
    tree.load_config(str(library / "examples" / "zephyr" / "prj.conf"))
    assert option.str_value == "y"
    assert tree.warnings == []


def test_esp_idf_manifest(library: Path, require_tool: Callable[[str], Any]) -> None:
    """idf_component.yml has what Espressif's registry asks for, and only keys that it knows."""
    require_tool("ruamel.yaml")
    found = read_yaml(library / "idf_component.yml")
    assert set(found) == {"version", "description", "license", "tags", "dependencies"}
    assert re.fullmatch(SEMVER, found["version"])
    assert found["license"] == "Apache-2.0"
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{3,32}", tag) for tag in found["tags"])
