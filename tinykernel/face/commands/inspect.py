"""Show what there is: a model, targets, boards, settings; convert a model of another library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.base.errors import TinykernelError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.text import join, percent, size
from tinykernel.compile.targets import BOARDS, TARGETS, Target, boards_of, find_target
from tinykernel.data.paths import find_data
from tinykernel.face import arguments as args
from tinykernel.face import settings
from tinykernel.face.output import print_json, print_pairs, print_table, showing_progress
from tinykernel.face.rows import ModelFile, open_model

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel

_CLASSES_SHOWN = 12


def inspect_command(
    model: Path = args.MODEL,
    proof: Path | None = args.option(
        "FILE",
        "write the proved bounds, and inputs that reach them, as JSON; check_proof.py checks "
        "it against the exported C",
    ),
    as_json: bool = args.JSON,
) -> None:
    """Show sizes, arithmetic and proved ranges of a model."""
    from tinykernel.compile.plan import pack
    from tinykernel.face.pages.page import training_in_words

    if proof is not None:
        args.check_output_file(proof, (".json",), [model])
    opened = open_model(model)
    integer, ranges = opened.model, opened.model.ranges()
    if proof is not None:
        from tinykernel.base.files import source_folder
        from tinykernel.compile.plan import certificate

        write_bytes_atomically(proof, certificate(integer))
        checker = source_folder("firmware") / "check_proof.py"  # needs nothing of this package
        typer.echo(f"{proof} holds the proof; {checker} checks it against the C", err=True)
    facts = _facts(integer)
    tables = pack(integer).tables
    if as_json:
        lists = {
            "tables": [{"bytes": table.n_bytes, "what": table.comment} for table in tables],
            "ranges": [vars(stage) for stage in ranges],
        }
        print_json({"model": model.name, **facts, **lists, "about": opened.about})
        return
    print_pairs([("model", model.name), *_in_words(integer, model.stat().st_size)])
    if opened.about:
        typer.echo("\nTraining, as recorded in the file:")
        print_pairs(training_in_words(opened.about))
    _print_places(opened)
    typer.echo("\nTables in flash:")
    lines = [(f"{table.n_bytes:,}", table.comment) for table in tables]
    print_table(("bytes", "what they hold"), lines, right=("bytes",))
    typer.echo("\nProved for every possible input:")
    rows = []
    for stage in ranges:
        ends = ((stage.low, stage.limit_low), (stage.high, stage.limit_high))
        used = max(end / limit for end, limit in ends if limit)  # the share of its type
        limits = f"{stage.limit_low}..{stage.limit_high}"
        rows.append((stage.stage, str(stage.low), str(stage.high), limits, percent(used)))
    columns = ("stage", "lowest", "highest", "limit", "used")
    print_table(columns, rows, right=columns[1:])


def _print_places(file: ModelFile) -> None:
    """Print where in each clip of the training its word was found."""
    places, cut = file.about.get("places"), file.origin.recordings
    if isinstance(places, dict) and cut is not None and cut.rate:
        seconds = file.model.input.rows / cut.rate
        typer.echo("\nWhere words were found in their clips:")
        rows = [(name, f"{at:.2f}", f"{at + seconds:.2f}") for name, at in sorted(places.items())]
        print_table(("clip", "from, s", "to, s"), rows, right=("from, s", "to, s"))


def _facts(integer: IntegerModel) -> dict[str, Any]:
    """Return the ``inspect --json`` of a model."""
    from tinykernel.compile.enums import seen_shape

    return {
        "classes": list(integer.classes),
        "shape": list(seen_shape(integer)),
        "stages": [stage.KIND for stage in integer.stages],
        "readout": [part.KIND for part in integer.readout.parts],
        "fingerprint": integer.fingerprint(),
        **_structure(integer),
        **({} if integer.decision is None else {"decision": integer.decision.facts()}),
        **({} if integer.events is None else {"events": integer.events.facts()}),
    }


def _structure(integer: IntegerModel) -> dict[str, Any]:
    """Return the numbers that describe a model."""
    from tinykernel.model.answers import Values

    facts: dict[str, Any] = {
        "features": integer.n_features,
        "raw_input": integer.raw_dtype,
        "quantized_input": str(integer.input_dtype),
        "components": 0,
    }
    if isinstance(integer.answers, Values):
        facts |= {"values": list(integer.answers.names), "scale_shift": integer.answers.shift}
    for piece in integer.pieces:
        facts |= piece.facts()
    if integer.is_one_class:
        facts["novel_above"] = -int(integer.readout.offset[0])
    return facts


def _in_words(integer: IntegerModel, file_size: int) -> list[tuple[str, str]]:
    from tinykernel.compile.enums import consists_of, seen_shape
    from tinykernel.face.pages.page import plain

    inputs, grid = f"{integer.n_inputs} of {integer.raw_dtype}", integer.input
    if not grid.is_table:
        unit = "samples and channels" if grid.is_signal else "pixels"
        beside = "" if integer.beside is None else f" and {integer.beside.title}"
        shapes = dict.fromkeys((grid.shape, seen_shape(integer)))  # frames are resized
        size_of = ", resized to ".join(" x ".join(map(str, shape)) for shape in shapes)
        inputs = f"{size_of} {unit}{beside} of {grid.dtype}"
    classes = f"{integer.n_classes}: {join(integer.classes, _CLASSES_SHOWN)}"
    facts = {name: value for name, value in _structure(integer).items() if value}
    return [
        ("file", size(file_size)),
        ("consists of", consists_of(integer)),
        ("inputs", inputs),
        ("classes", classes if integer.classes else ""),
        *((name.replace("_", " "), plain(value)) for name, value in facts.items()),
        *([] if integer.decision is None else integer.decision.words()),
        *([] if integer.events is None else integer.events.in_words(integer.classes)),
        ("fingerprint", integer.fingerprint()[:16]),
    ]


def convert_command(
    model: Path = args.argument(
        "MODEL", "LightGBM's .txt, XGBoost's or CatBoost's .json, .onnx, .tflite, .skops"
    ),
    output: Path = args.option("--output -o FILE", "model file to write: .tkm", ...),
    data: str | None = args.option("DATA", "rows as the model learned"),
    budget: Any = args.BUDGET,
    target: str = args.option(
        "--target -t TARGET",
        "processor that the budget is for",
        value="cortex-m4",
        autocompletion=settings.complete_targets,
    ),
    max_change: float = args.number_option(
        "SHARE", "largest share of rows with another label", 0.0, value=0.005
    ),
) -> None:
    """Turn a model of another library into a model file.

    Trees stay exact. All others need --data for the ranges of their inputs, budgets for labels.
    """
    args.check_output_file(output, args.MODEL_SUFFIXES, inputs=[model])
    from tinykernel.conversion import boosters
    from tinykernel.conversion.files import SavedBooster, input_names, read_model
    from tinykernel.conversion.models import change_of, convert
    from tinykernel.data.load import load_inputs
    from tinykernel.model.file import save

    with showing_progress(False):
        foreign = read_model(model)
        coding = boosters.coding_of(foreign) if isinstance(foreign, SavedBooster) else None
        names, with_axes = input_names(foreign), hasattr(foreign, "rows_of")
        file = None if data is None else find_data(data)
        rows = None if file is None else load_inputs(file, names, coding, with_axes=with_axes)
        task = foreign.usual_task(rows) if hasattr(foreign, "usual_task") else None
        limits = {"max_change": max_change, "budget": budget, "target": find_target(target).name}
        converted = convert(foreign, rows, task=task, **limits)
    save(converted, output, {"converted": model.name})
    changed = "" if rows is None else f"; {change_of(foreign, converted, rows)}"
    typer.echo(f"{output}: {converted!r}{changed}{'; scores of classes' if task else ''}")


def targets_command(
    fits: Path | None = args.option("MODEL", "list the boards that can hold this model"),
    target: list[str] = args.TARGETS,
    tools: bool = args.flag("--tools", "list the compilers and emulators of this computer"),
    as_json: bool = args.JSON,
) -> None:
    """List processors, boards or tools, or boards for a model.

    --target limits the list to these processors.
    """
    names = args.expand_targets(target, TARGETS)[0] if target else list(TARGETS)
    chosen = [TARGETS[name] for name in names]
    if tools:
        if fits is not None:
            raise args.misuse("--fits", "not with --tools; give one of them")
        _show_tools(chosen, as_json=as_json)
    elif fits is not None:
        cores = {each.core for each in chosen if each.family != "host"}
        _show_fits(fits, cores, as_json=as_json)
    elif as_json:
        print_json([_facts_of_target(each) for each in chosen])
    else:
        _print_targets(chosen)


def _facts_of_target(target: Target) -> dict[str, Any]:
    """Return the ``targets --json`` of a processor."""
    names = ("title", "platform", "flash", "ram", "clock")
    return {
        "target": target.name,
        "description": target.description,
        "flash": target.flash,
        "ram": target.ram,
        "boards": [board.name for board in target.boards if board.name],
        "frameworks": list(target.frameworks),
        "board_memory": [
            {"board": board.name, **{name: getattr(board, name) for name in names}}
            | {"platform": board.platform or None}
            for board in boards_of(target.core)
            if board.name
        ],
    }


def _print_targets(targets: list[Target]) -> None:
    rows = [
        (
            target.name,
            target.description.split(":")[0],
            size(target.flash) if target.flash else "-",
            size(target.ram) if target.ram else "-",
            target.board.name or "-",
            ", ".join(target.board.frameworks),
        )
        for target in targets
    ]
    columns = ("target", "core", "flash", "RAM", "board", "frameworks")
    print_table(columns, rows, right=("flash", "RAM"))
    typer.echo()
    rows = [
        (
            board.name,
            board.target,
            size(board.flash),
            size(board.ram),
            f"{board.clock // 1_000_000} MHz",
            board.title,
        )
        for target in targets
        for board in boards_of(target.name)
        if board.name
    ]
    columns = ("board", "target", "flash", "RAM", "clock", "name on the box")
    print_table(columns, rows, right=("flash", "RAM", "clock"))


def _show_tools(targets: list[Target], *, as_json: bool) -> None:
    """Print what was found on this computer for each target, and what to install."""
    from tinykernel.run.program import find_platforms, find_toolchain, tools_for

    rows = []
    for target in targets:
        chain, emulator, missing = find_toolchain(target), None, None
        try:
            platform = find_platforms(target)[0]
            chain, emulator = platform.chain, platform.emulator or "this computer"
        except TinykernelError:
            missing = tools_for(target)
        compiler = None if chain is None else chain.title
        row = {"target": target.name, "compiler": compiler, "emulator": emulator}
        rows.append(row | {"install": missing})
    if as_json:
        print_json(rows)
    else:
        columns = ("target", "compiler", "emulator", "install")
        print_table(columns, [[each or "-" for each in row.values()] for row in rows])


def _show_fits(path: Path, cores: set[str], *, as_json: bool) -> None:
    """Print the boards of these cores that hold a model, and the memory left."""
    rows = _fits(open_model(path).model, cores)
    if as_json:
        print_json(rows)
        return
    left, holding = ("flash left", "RAM left", "clock"), [row for row in rows if row["fits"]]
    table = []
    for row in holding:
        memory = (size(row[f"{kind}_left"]) for kind in ("flash", "ram"))
        clock = f"{row['clock'] // 1_000_000} MHz"
        table.append((row["board"], row["target"], *memory, clock, row["title"]))
    print_table(("board", "target", *left, "name on the box"), table, right=left)
    lacking: dict[str, list[str]] = {}
    for row in rows:
        if not row["fits"]:
            lacking.setdefault(row["problem"], []).append(row["board"])
    for problem, boards in lacking.items():
        typer.echo(f"{', '.join(boards)}: {problem}")
    typer.echo(f"{len(holding)} of {len(rows)} boards can hold it")
    typer.echo(
        "estimated without a compiler: tables, code, scratch and stack of the model, without the "
        "framework and the rest of the program"
    )


def _fits(model: IntegerModel, cores: set[str]) -> list[dict[str, Any]]:
    """Compare the memory of a model with that of each board, the smallest first."""
    from tinykernel.run.report import report

    needs: dict[str, tuple[int, int] | str] = {}
    for core in cores:
        try:
            sizes = report(model, core, compiler="none")
            ram = min(sizes.ram, (sizes.stream or {}).get("ram", sizes.ram))
            needs[core] = sizes.flash, ram
        except TinykernelError as error:
            needs[core] = str(error)
    rows: list[dict[str, Any]] = []
    named = (board for board in BOARDS if board.name and board.target in cores)
    for board in sorted(named, key=lambda board: (board.flash, board.ram, board.name)):
        need = needs[board.target]
        left: dict[str, int | None] = {"flash_left": None, "ram_left": None}
        problem: str | None = str(need)
        if not isinstance(need, str):
            free = board.flash - need[0], board.ram - need[1]
            left = dict(zip(left, free, strict=True))
            kinds = zip(("flash", "RAM"), free, strict=True)
            short = [f"{-n_bytes} bytes of {kind}" for kind, n_bytes in kinds if n_bytes < 0]
            problem = f"lacks {' and '.join(short)}" if short else None
        names = ("title", "target", "clock", "flash", "ram")
        facts = {"board": board.name, **{name: getattr(board, name) for name in names}}
        rows.append(facts | {"fits": problem is None, "problem": problem, **left})
    return rows


def options_command(
    names: list[str] | None = args.argument(
        "NAME", "settings to show in full", value=None, autocompletion=settings.complete_settings
    ),
    as_json: bool = args.JSON,
) -> None:
    """List all settings, or show some in full.

    Give settings with --set NAME=VALUE, or in a file: --config FILE, by default tinykernel.toml
    next to the data (for export, next to the model). Its tables are [data], [train], [tune] and
    [export]. The command line takes precedence over the file.
    """
    chosen = (
        [args.find_setting(name, name) for name in names]
        if names
        else list(settings.SETTINGS.values())
    )
    if as_json:
        print_json([_facts_of_setting(setting) for setting in chosen])
    elif names:
        for setting in chosen:
            print_pairs(_in_full(setting))
    else:
        columns = ("setting", "value", "default", "")
        for part in settings.PARTS:
            rows = [_row_of_setting(setting) for setting in chosen if setting.part == part]
            typer.echo(f"[{part}]")
            print_table(columns, rows)
            typer.echo()
        typer.echo("'tinykernel options NAME' shows one in full")


def _row_of_setting(setting: settings.Setting) -> tuple[str, ...]:
    default = "-" if setting.usual is None else str(setting.usual)
    return setting.name, setting.form, default, setting.summary


def _facts_of_setting(setting: settings.Setting) -> dict[str, object]:
    names = {"kind": "form", "default": "usual", "text": "description"}
    same = ("name", "part", "tasks", "methods", "chosen")
    facts = {name: getattr(setting, names.get(name, name)) for name in (*same, *names)}
    return facts | {"range": setting.range or None}


def _in_full(setting: settings.Setting) -> list[tuple[str, str]]:
    return [
        (setting.name, setting.description),
        ("value", setting.form),
        ("range", setting.range),
        ("default", setting.usual_text),
        ("table", f"[{setting.part}]"),
        ("tasks", "" if setting.tasks == settings.TASKS else ", ".join(setting.tasks)),
        ("method", "" if setting.methods == settings.METHODS else ", ".join(setting.methods)),
    ]
