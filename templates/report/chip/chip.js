// The firmware of a model, compiled to WebAssembly: what it answers is what the chip answers.

const ARRAYS = {
  uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
  float32: Float32Array,
};
const LIMITS = {
  uint8: [0, 255], int8: [-128, 127], uint16: [0, 65535], int16: [-32768, 32767],
  int32: [-2147483648, 2147483647],
};
const NO_EVENT = -2;

class Chip {
  /** Start the module: `facts` are those of the model, as tinykernel wrote them. */
  static async start(bytes, facts) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Chip(instance.exports, facts);
  }

  constructor(core, facts) {
    const memory = core.memory.buffer;
    this.core = core;
    this.facts = facts;
    this.input = new ARRAYS[facts.type](memory, core.tk_input(), facts.inputs);
    this.results = new Int32Array(memory, core.tk_results(), facts.outputs + 5);
  }

  /** Return a raw value as its type can hold it: rounded and limited, floats as they are. */
  raw(value) {
    const limits = LIMITS[this.facts.type];
    return limits ? Math.min(Math.max(Math.round(value), limits[0]), limits[1]) : value;
  }

  /** Answer an input of `facts.inputs` raw values: a row, a whole window, an image. */
  predict(values) {
    if (values.length !== this.input.length) throw new RangeError(`${values.length} values instead of ${this.input.length}`);
    for (let i = 0; i < values.length; i++) this.input[i] = this.raw(values[i]);
    this.core.tk_run();
    return { ...this.answer(), event: NO_EVENT };
  }

  /** Begin a stream, also after a gap. */
  reset() {
    this.core.tk_reset();
  }

  /** Set the numbers beside the next windows of a stream. */
  setNumbers(values) {
    for (let i = 0; i < values.length; i++) this.input[i] = this.raw(values[i]);
    this.core.tk_numbers();
  }

  /** Push samples, channels interleaved; call `decided(answer, samples)` after each decision. */
  push(samples, decided) {
    const { channels } = this.facts;
    const most = Math.floor(this.input.length / channels);
    for (let begin = 0; begin * channels < samples.length; begin += most) {
      const part = samples.subarray(begin * channels, (begin + most) * channels);
      for (let i = 0; i < part.length; i++) this.input[i] = this.raw(part[i]);
      const end = part.length / channels;
      for (let at = 0; (at = this.core.tk_push(at, end)) > 0;) decided(this.answer(), begin + at);
    }
  }

  /** Return scores, and what the firmware decides from them; label -1 is a refusal. */
  answer() {
    const n = this.facts.outputs;
    const [label, margin, confidence, novelty, event] = this.results.subarray(n);
    return { scores: Array.from(this.results.subarray(0, n)), label, margin: margin >>> 0, confidence, novelty,
      event: this.facts.events ? event : NO_EVENT };
  }

  /** Compare rows with the scores that Python computed; return how many are equal, of how many. */
  prove({ inputs, proofs, step, scores }) {
    const ring = new ARRAYS[this.facts.type](bytesOf(inputs).buffer);
    const expected = new Int32Array(bytesOf(scores).buffer);
    const { inputs: width, outputs } = this.facts;
    let equal = 0;
    for (let row = 0; row < proofs; row++) {
      for (let i = 0; i < width; i++) this.input[i] = ring[(row * step + i) % ring.length];
      this.core.tk_run();
      for (let i = 0; i < outputs; i++) equal += this.results[i] === expected[row * outputs + i];
    }
    return [equal, proofs * outputs];
  }
}

/** Decode base64. */
function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}
