"""The C functions that take a model as data, and those of the same names that need none."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.model.integer import IntegerModel

_COLUMNS = 96
_DEEPER = " " * 8


@dataclass(frozen=True)
class Function:
    """A function of the interface.

    `parameters` are C declarations, `arguments` their names, `call` the function of the runtime and
    `given` what it takes. Only where `reads` is set does it read tables, and has a form that takes
    a model.
    """

    prefix: str
    result: str
    name: str
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]
    call: str
    given: tuple[str, ...]
    reads: bool = True

    @property
    def plain(self) -> str:
        """The declaration of the form for the built-in model."""
        return self._declared(f"{self.prefix}_{self.name}", self.parameters)

    @property
    def with_model(self) -> str:
        """The declaration of the form that takes a model."""
        model = f"const {self.prefix}_model_t *model"
        return self._declared(f"{self.prefix}_{self.name}_with", (model, *self.parameters))

    @property
    def plain_body(self) -> str:
        """Statement of the form for the built-in model."""
        if not self.reads:
            return self._statement(self.call, self.given)
        return self._statement(
            f"{self.prefix}_{self.name}_with", (f"&{self.prefix}_builtin", *self.arguments)
        )

    @property
    def body(self) -> str:
        """Statement of the form that takes a model."""
        return self._statement(self.call, ("model", *self.given))

    def _statement(self, call: str, arguments: tuple[str, ...]) -> str:
        back = "" if self.result == "void" else "return "
        return f"{back}{call}({', '.join(arguments)});"

    def _declared(self, name: str, parameters: tuple[str, ...]) -> str:
        lines = [f"{self.result} {name}("]
        for i, parameter in enumerate(parameters):
            text = parameter + ("," if i + 1 < len(parameters) else ")")
            if i and len(lines[-1]) + 1 + len(text) > _COLUMNS:
                lines.append(_DEEPER + text)
            else:
                lines[-1] += f" {text}" if i else text
        return "\n".join(lines)


def functions(model: IntegerModel, name: str) -> list[Function]:
    """List the functions of a model's interface, in the order of its header."""
    classifies, decides = model.values is None, model.decision is not None
    stage, upper = model.local, name.upper()
    result = "scores" if classifies else "values"
    scores = "scores" if classifies else "predict"
    words = f"uint32_t scratch[{upper}_SCRATCH_LEAST]"
    raw = f"const {name}_input_t *input"
    found = _forms(name, "", (raw, words), ("input", "scratch"), classifies, decides)
    if decides:
        vector, margin = "const int32_t *scores", "uint32_t *margin"
        found.append(
            Function(
                name,
                "int",
                "decide_scores",
                (vector, margin),
                ("scores", "margin"),
                "tk_decide_scores",
                ("scores", "margin"),
            )
        )
        found.append(
            Function(
                name,
                "uint8_t",
                "confidence",
                (vector,),
                ("scores",),
                "tk_confidence_of",
                ("scores",),
            )
        )
        assert model.decision is not None
        if model.decision.prototypes is not None:
            found += _novelty_forms(name, "", (raw, words), ("input", "scratch"))
            if stage is None:
                quantized = f"const {name}_quantized_t *input"
                found.append(
                    Function(
                        name,
                        "int32_t",
                        "novelty_quantized",
                        (quantized, vector),
                        ("input", "scores"),
                        "tk_novelty_quantized",
                        ("(const tk_quantized_t *)input", "scores"),
                    )
                )
        elif model.decision.novelty_threshold is not None:
            found.append(
                Function(
                    name,
                    "int32_t",
                    "novelty",
                    (vector,),
                    ("scores",),
                    "tk_novelty_of",
                    ("scores",),
                    reads=False,
                )
            )
            found.append(
                Function(
                    name, "int", "is_novel", (vector,), ("scores",), "tk_is_novel", ("scores",)
                )
            )
    if stage is not None and stage.hop:
        state = f"{name}_state_t *state"
        found += [
            Function(
                name,
                "void",
                "init",
                (state,),
                ("state",),
                "tk_stream_init",
                ("state->words",),
                reads=False,
            ),
            Function(
                name,
                "int",
                "push",
                (state, f"const {name}_input_t *sample"),
                ("state", "sample"),
                "tk_stream_push",
                ("state->words", "sample"),
            ),
        ]
        least = f"uint32_t scratch[{upper}_STREAM_LEAST]"
        found += _forms(name, "stream_", (state, least), ("state", "scratch"), classifies, decides)
        if model.decision is not None and model.decision.prototypes is not None:
            found += _novelty_forms(name, "stream_", (state, least), ("state", "scratch"))
    if stage is None:
        kept = f"const {name}_quantized_t *input"
        whole = ("(const tk_quantized_t *)input", "scratch")
        if classifies:
            found.append(
                Function(
                    name,
                    "int",
                    "predict_quantized",
                    (kept, words),
                    ("input", "scratch"),
                    "tk_predict_quantized",
                    whole,
                )
            )
        found += [
            Function(
                name,
                "void",
                f"{scores}_quantized",
                (kept, words, f"int32_t *{result}"),
                ("input", "scratch", result),
                "tk_scores_quantized",
                (*whole, result),
            ),
            Function(
                name,
                "void",
                "quantize",
                (raw, f"{name}_quantized_t *output"),
                ("input", "output"),
                "tk_quantize",
                ("input", "(tk_quantized_t *)output"),
            ),
        ]
    return found


def _novelty_forms(
    name: str, kind: str, parameters: tuple[str, ...], arguments: tuple[str, ...]
) -> list[Function]:
    """List what decides and tells novelty by prototypes, of inputs or of a stream."""
    given = tuple("state->words" if name == "state" else name for name in arguments)
    found = ("margin", "novelty")
    return [
        Function(
            name,
            "int",
            f"{kind}decide_novelty",
            (*parameters, "uint32_t *margin", "int32_t *novelty"),
            (*arguments, *found),
            f"tk_{kind}decide_novelty",
            (*given, *found),
        ),
    ]


def _forms(
    name: str,
    kind: str,
    parameters: tuple[str, ...],
    arguments: tuple[str, ...],
    classifies: bool,
    decides: bool,
) -> list[Function]:
    """List predict, scores and decide, of inputs or of a stream."""
    given = tuple("state->words" if name == "state" else name for name in arguments)
    result = "scores" if classifies else "values"
    found = []
    if classifies:
        found.append(
            Function(
                name, "int", f"{kind}predict", parameters, arguments, f"tk_{kind}predict", given
            )
        )
    called = f"{kind}{'scores' if classifies else 'predict'}"
    found.append(
        Function(
            name,
            "void",
            called,
            (*parameters, f"int32_t *{result}"),
            (*arguments, result),
            f"tk_{kind}scores",
            (*given, result),
        )
    )
    if decides:
        found.append(
            Function(
                name,
                "int",
                f"{kind}decide",
                (*parameters, "uint32_t *margin"),
                (*arguments, "margin"),
                f"tk_{kind}decide",
                (*given, "margin"),
            )
        )
    return found
