"""The list of targets, and what a model is."""

from tests.cli.tools import failed, json_of, run
from tinykernel.compile.targets import BOARDS, TARGETS


def test_targets():
    """All targets are listed, as JSON too; boards have their name, flash and RAM."""
    assert [row["target"] for row in json_of("targets")] == list(TARGETS)
    table = run("targets").stdout
    assert all(name in table for name in (*TARGETS, "Raspberry Pi Pico 2"))
    row = next(line for line in table.splitlines() if line.startswith("uno "))
    assert row.split()[1:8] == ["atmega328p", "32.0", "KB", "2.0", "KB", "16", "MHz"]


def test_tools_of_this_computer(monkeypatch, tmp_path) -> None:
    """Each target has its compiler and emulator, or what to install; without any, only the last."""
    for row in json_of("targets", "--tools"):
        assert (row["install"] is None) == (None not in (row["compiler"], row["emulator"]))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLATFORMIO_CORE_DIR", str(tmp_path))
    (row,) = json_of("targets", "--tools", "--target", "esp8266")  # zig does not build for it
    lacking = {"compiler": None, "emulator": None, "install": "its gcc and qemu"}
    assert row == {"target": "esp8266"} | lacking
    failed("targets", "--tools", "--fits", __file__, status=2)


def test_which_boards_hold_a_model(work) -> None:
    """Every board is answered for: what is left, or what it lacks."""
    rows = json_of("targets", "--fits", work / "gesture.tkm")
    assert {row["board"] for row in rows} == {board.name for board in BOARDS if board.name}
    for row in rows:
        enough = row["flash_left"] >= 0 and row["ram_left"] >= 0
        assert row["fits"] == enough == (row["problem"] is None)
    pico = next(row for row in rows if row["board"] == "pico")
    assert pico["fits"]
    assert 2000 * 1024 < pico["flash_left"] < pico["flash"]
    text = run("targets", "--fits", work / "gesture.tkm").stdout
    assert all(row["board"] in text for row in rows)
    asked = ("targets", "--fits", work / "gesture.tkm", "--target", "cortex-m7f,esp8266")
    chosen = json_of(*asked)
    assert {row["target"] for row in chosen} == {"cortex-m7", "esp8266"}
    assert all(row["board"] in run(*asked).stdout for row in chosen)


def test_inspect(work):
    """inspect shows sizes and the proved range of every stage, which lie inside the limits."""
    found = json_of("inspect", work / "gesture.tkm")
    assert (found["features"], found["classes"]) == (5, [0, 1, 2])
    assert found["components"] <= 64
    assert all(s["limit_low"] <= s["low"] <= s["high"] <= s["limit_high"] for s in found["ranges"])
    text = run("inspect", work / "gesture.pkl").stdout
    assert "(P)" in text
    assert sum(table["bytes"] for table in found["tables"]) > 50
    assert f"{found['tables'][0]['bytes']:,}    {found['tables'][0]['what']}" in text
    assert found["fingerprint"][:16] in text
