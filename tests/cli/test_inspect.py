"""What a model is."""

from tests.cli.tools import json_of, run, succeeded
from tests.separable import separable_model
from tinykernel import save


def test_inspect(work):
    """inspect shows sizes and the proved range of every stage, which lie inside the limits."""
    found = json_of("inspect", work / "gesture.tkm")
    assert (found["features"], found["classes"]) == (5, [0, 1, 2])
    assert found["components"] <= 64
    assert all(s["limit_low"] <= s["low"] <= s["high"] <= s["limit_high"] for s in found["ranges"])
    text = run("inspect", work / "gesture.pkl").stdout
    assert "second transform" in text
    assert "(P)" in text
    assert sum(table["bytes"] for table in found["tables"]) > 50
    assert f"{found['tables'][0]['bytes']:,}    {found['tables'][0]['what']}" in text
    assert found["fingerprint"][:16] in text


def test_inspect_of_an_image_model_says_what_the_file_remembers(tmp_path):
    """No line about components that are not there, words for what a program wrote, no digests."""
    model = separable_model(3, (8, 8), n_classes=4)
    search = {"trials": 7, "chosen": "compact", "log_loss_usual": 0.5, "log_loss": 0.25}
    about = {
        "sizes": {"flash": 2000, "ram": 300, "measured": "estimate"},
        "budget": 4096,
        "training_rows": {"rows": 60, "digests": [11111, 22222]},
        "search": search,
        "calibration_rows": {"rows": 9, "digests": [33333]},
        "inputs": ["ax", "ay"],
        "accuracy": {"test_accuracy": 0.975, "train_accuracy": 1.0},
    }
    save(model, tmp_path / "m.tkm", about)
    result = succeeded("inspect", tmp_path / "m.tkm")
    lines = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert "2 blocks of separable convolutions, 5 channels" in lines["consists of"]
    assert lines.keys().isdisjoint({"components", "permutation", "halvings first"})
    assert "2000 bytes of flash, 300 of RAM (estimate)" in lines["size"]
    assert "log loss 0.500 with default values, 0.250 with these" in lines["search"]
    assert "100.00 % of the training rows, 97.50 % of the test rows" in lines["accuracy"]
    assert not any(digits in result.stdout for digits in ("11111", "33333", "{", "_rows"))
