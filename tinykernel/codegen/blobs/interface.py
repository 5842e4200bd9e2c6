"""The C functions that take a model as data, and those of the same names that need none."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tinykernel.model.answers.labels import Labels
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
    upper = name.upper()

    def make(
        result: str, called: str, *parameters: str, call: str = "", reads: bool = True
    ) -> Function:
        """Return a function; what it calls takes the same, states as words."""
        arguments = tuple(re.findall(r"\w+", text.partition("[")[0])[-1] for text in parameters)
        given = tuple(
            "state->words"
            if argument == "state"
            else f"({'const ' if text.startswith('const') else ''}tk_quantized_t *){argument}"
            if "quantized_t" in text
            else argument
            for argument, text in zip(arguments, parameters, strict=True)
        )
        return Function(
            name, result, called, parameters, arguments, call or f"tk_{called}", given, reads
        )

    classifies, decision = isinstance(model.answers, Labels), model.decision
    scores, result = ("scores", "scores") if classifies else ("predict", "values")
    raw, words = f"const {name}_input_t *input", f"uint32_t scratch[{upper}_SCRATCH_LEAST]"
    quantized, vector = f"const {name}_quantized_t *input", "const int32_t *scores"
    margin, far = "uint32_t *margin", "int32_t *novelty"
    with_prototypes = decision is not None and decision.n_prototypes > 0

    def forms(kind: str, *given: str) -> list[Function]:
        """List predict, scores and decide, of inputs or of a stream."""
        found = [make("int", f"{kind}predict", *given)] if classifies else []
        called, out = f"{kind}{scores}", f"int32_t *{result}"
        found.append(make("void", called, *given, out, call=f"tk_{kind}scores"))
        return found + ([] if decision is None else [make("int", f"{kind}decide", *given, margin)])

    def novelty(kind: str, *given: str) -> list[Function]:
        """List what decides and tells novelty by prototypes, of inputs or of a stream."""
        called = f"{kind}decide_novelty"
        return [make("int", called, *given, margin, far)] if with_prototypes else []

    found = forms("", raw, words)
    if decision is not None:
        found.append(make("int", "decide_scores", vector, margin))
        found.append(make("uint8_t", "confidence", vector, call="tk_confidence_of"))
        found += novelty("", raw, words)
        if with_prototypes and model.input.is_table:
            found.append(make("int32_t", "novelty_quantized", quantized, vector))
        elif not with_prototypes and decision.novelty_threshold is not None:
            found.append(make("int32_t", "novelty", vector, call="tk_novelty_of", reads=False))
            found.append(make("int", "is_novel", vector))
    if model.hop:
        state = f"{name}_state_t *state"
        least = f"uint32_t scratch[{upper}_STREAM_LEAST]"
        sample = f"const {name}_input_t *sample"
        found.append(make("void", "init", state, call="tk_stream_init", reads=False))
        found.append(make("int", "push", state, sample, call="tk_stream_push"))
        found += forms("stream_", state, least) + novelty("stream_", state, least)
    if model.input.is_table:
        if classifies:
            found.append(make("int", "predict_quantized", quantized, words))
        called, out = f"{scores}_quantized", f"int32_t *{result}"
        found.append(make("void", called, quantized, words, out, call="tk_scores_quantized"))
        found.append(make("void", "quantize", raw, f"{name}_quantized_t *output"))
    return found
