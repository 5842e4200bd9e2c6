// A signal: microphone, motion sensor or a file, pushed sample by sample as on the device.

const [COLUMNS, LINES] = [600, 128];
const MOST_DECISIONS = 400;
const POINTS = 256;
const QUANTUM = 128;

/** Return the power of `POINTS` samples at 64 frequencies, by a radix-2 FFT. For the picture only. */
function spectrumOf(samples) {
  const real = Float64Array.from({ length: POINTS }, (_, i) => {
    let from = 0;
    for (let bit = 1, value = i; bit < POINTS; bit *= 2, value >>= 1) from = 2 * from + (value & 1);
    return (samples[from] || 0) * Math.sin((Math.PI * (from + 0.5)) / POINTS) ** 2;
  });
  const imaginary = new Float64Array(POINTS);
  for (let half = 1; half < POINTS; half *= 2) {
    for (let k = 0; k < half; k++) {
      const [c, s] = [Math.cos((Math.PI * k) / half), -Math.sin((Math.PI * k) / half)];
      for (let i = k; i < POINTS; i += 2 * half) {
        const j = i + half;
        const [x, y] = [c * real[j] - s * imaginary[j], c * imaginary[j] + s * real[j]];
        [real[j], imaginary[j]] = [real[i] - x, imaginary[i] - y];
        real[i] += x;
        imaginary[i] += y;
      }
    }
  }
  return Array.from({ length: 64 }, (_, k) => Math.log2(1 + real[2 * k] ** 2 + imaginary[2 * k] ** 2));
}

/** Read a WAV file of 16-bit PCM as it is; null for other files. */
function readWav(buffer) {
  const view = new DataView(buffer);
  const word = (at) => String.fromCharCode(...new Uint8Array(buffer, at, 4));
  if (buffer.byteLength < 44 || word(0) !== "RIFF" || word(8) !== "WAVE") return null;
  let format = null;
  for (let at = 12; at + 8 <= buffer.byteLength;) {
    const [name, size] = [word(at), view.getUint32(at + 4, true)];
    if (name === "fmt ") format = { code: view.getUint16(at + 8, true), channels: view.getUint16(at + 10, true), rate: view.getUint32(at + 12, true), bits: view.getUint16(at + 22, true) };
    if (name === "data") {
      if (format === null || format.code !== 1 || format.bits !== 16) return null;
      const n = Math.floor(Math.min(size, buffer.byteLength - at - 8) / 2);
      return { ...format, samples: Int16Array.from({ length: n }, (_, i) => view.getInt16(at + 8 + 2 * i, true)) };
    }
    at += 8 + size + (size % 2);
  }
  return null;
}

/** Read the channels of a table with a header, by their names or as its first numeric columns. */
function readCsv(text, names, n) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() && !line.startsWith("#"));
  if (!lines.length) throw new Error("it is empty");
  const comma = [",", ";", "\t"].find((mark) => lines[0].includes(mark)) || ",";
  const cells = (line) => line.split(comma).map((word) => word.trim().replace(/^"|"$/g, ""));
  const head = cells(lines[0]);
  const hasHead = head.some((word) => word !== "" && Number.isNaN(Number(word)));
  let columns = names.map((name) => head.indexOf(name));
  if (columns.length !== n || columns.includes(-1)) {
    if (hasHead && names.length === n) throw new Error(`no columns ${names.join(", ")}`);
    columns = Array.from({ length: n }, (_, i) => i);
  }
  const numberOf = (word) => {
    if (!word || Number.isNaN(Number(word))) throw new Error(`"${word ?? ""}" is no number`);
    return Number(word);
  };
  // 64 bits: a float32 does not hold every int32.
  return Float64Array.from(lines.slice(hasHead ? 1 : 0).map(cells).flatMap((row) => columns.map((column) => numberOf(row[column]))));
}

/** The samples that an analyser has taken since the last time: none twice, none left out. */
class TailOf {
  constructor(analyser) {
    this.analyser = analyser;
    this.buffer = new Float32Array(analyser.fftSize);
    this.last = null;
  }

  read(now) {
    this.analyser.getFloatTimeDomainData(this.buffer);
    const { length } = this.buffer;
    let from = length;
    if (this.last !== null) {
      // The clock may be some quanta ahead or behind: the samples themselves say where it went on.
      from = Math.max(QUANTUM, length - Math.round((now - this.now) / QUANTUM) * QUANTUM);
      const joins = (at) => at >= QUANTUM && at <= length && this.last.every((value, i) => value === this.buffer[at - QUANTUM + i]);
      for (let k = 0; k < 64; k++) {
        const at = from + (k % 2 ? 1 : -1) * QUANTUM * Math.ceil(k / 2);
        if (joins(at)) { from = at; break; }
      }
    }
    this.now = now;
    this.last = this.buffer.slice(length - QUANTUM);
    return this.buffer.slice(from);
  }
}

/** Show a signal; return what shows a window of the test data. */
function showStream(chip, view) {
  const { facts } = chip;
  const { channels, rate, signal } = facts;
  const picture = create("canvas", { width: COLUMNS, height: LINES, className: signal.sound ? "signal sound" : "signal" });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", "the last samples");
  const pen = picture.getContext("2d");
  const list = create("ol", { className: "decisions", reversed: true, tabIndex: 0 });
  list.setAttribute("aria-label", "decisions");
  let [time, decisions, events, waiting] = [0, 0, 0, []];
  let stopSource = null;
  // Columns that show about ten seconds, or four windows.
  const perColumn = Math.max(1, Math.round((rate ? Math.max(4 * signal.window, 10 * rate) : 4 * signal.window) / COLUMNS));
  const at = (sample) => (rate ? `${(sample / rate).toFixed(2)} s` : `sample ${sample}`);

  // A channel that the model does not use has no range: that of its samples.
  const ends = signal.ranges.map(() => [Infinity, -Infinity]);
  const rangeOf = (c) => {
    if (signal.ranges[c][0] !== null) return signal.ranges[c];
    ends[c] = [Math.min(ends[c][0], waiting[c]), Math.max(ends[c][1], waiting[c])];
    return ends[c];
  };
  const tops = new Array(channels).fill(null);
  /** Draw the samples that wait: so many a column, which is so wide. */
  const draw = (samples = perColumn, wide = 1) => {
    while (waiting.length >= Math.max(samples * channels, signal.sound ? POINTS : 0)) {
      pen.globalCompositeOperation = "copy"; // also what is transparent
      pen.drawImage(picture, -wide, 0);
      pen.globalCompositeOperation = "source-over";
      pen.clearRect(COLUMNS - wide, 0, wide, LINES);
      if (signal.sound) {
        spectrumOf(waiting).forEach((power, k) => {
          pen.fillStyle = `hsl(${260 - 10 * Math.min(26, power)} 80% ${Math.min(60, 2.4 * power)}%)`;
          pen.fillRect(COLUMNS - wide, LINES - 2 * k - 2, wide, 2);
        });
      } else {
        for (let c = 0; c < channels; c++) {
          const [low, high] = rangeOf(c);
          const top = (LINES - 2) * (1 - Math.min(Math.max((waiting[c] - low) / (high - low || 1), 0), 1));
          const last = tops[c] ?? top;
          pen.fillStyle = `hsl(${(360 * c) / channels + 210} 70% 50%)`;
          pen.fillRect(COLUMNS - wide, Math.min(top, last), wide, Math.abs(top - last) + 2);
          tops[c] = top;
        }
      }
      waiting = waiting.slice(samples * channels);
    }
  };
  const decided = (answer, sample) => {
    decisions++;
    const isEvent = answer.event !== NO_EVENT;
    if (isEvent) events++;
    if (facts.events && !isEvent) return view.show(answer, at(sample));
    const hours = rate ? sample / rate / 3600 : 0;
    const perHour = facts.events && hours > 0.01 ? `, ${short(events / hours)} events an hour` : "";
    const words = view.words(isEvent ? { ...answer, label: answer.event } : answer);
    list.prepend(create("li", { value: isEvent ? events : decisions }, `${at(sample)}: ${words}${perHour}`));
    if (list.childElementCount > MOST_DECISIONS) list.lastElementChild.remove();
    return view.show(answer, at(sample));
  };
  /** End the source that runs, and take another one, or none. */
  const setSource = (end) => {
    stopSource?.();
    stopSource = end;
    stop.disabled = end === null;
  };
  const stop = button("Stop", () => setSource(null));
  const begin = () => {
    setSource(null);
    pen.clearRect(0, 0, COLUMNS, LINES);
    tops.fill(null);
    [time, decisions, events, waiting] = [0, 0, 0, []];
    list.replaceChildren();
    view.clear();
    if (!facts.hop) return; // windows only: there is no stream to begin
    chip.reset();
    if (numbers) chip.setNumbers(numbers.values());
  };
  const push = (samples) => {
    if (numbers) chip.setNumbers(numbers.values());
    chip.push(samples, (answer, sample) => decided(answer, time + sample));
    time += samples.length / channels;
    waiting.push(...samples);
    draw();
  };
  /** Push a file in pieces, so that the page stays alive. */
  const play = async (samples, note) => {
    begin();
    let isOver = false;
    setSource(() => { isOver = true; });
    view.say(note);
    const piece = Math.max(1, Math.floor(4096 / channels)) * channels;
    for (let i = 0; i < samples.length; i += piece) {
      push(samples.subarray(i, i + piece));
      await new Promise(requestAnimationFrame);
      if (isOver) return;
    }
    setSource(null);
    // As in training: zeros follow a recording that is shorter than a window.
    const least = signal.window * channels;
    const padding = decisions ? "" : ", with zeros appended to make a window";
    if (samples.length < least) push(new samples.constructor(least - samples.length));
    for (let i = 0; decisions === 0 && i < signal.window; i += facts.hop) push(new samples.constructor(facts.hop * channels));
    view.say(`${note}${padding}: ${decisions} decision${decisions === 1 ? "" : "s"}${facts.events ? `, ${events} events` : ""}`);
  };
  const open = async (file) => {
    try {
      const buffer = await file.arrayBuffer();
      if (!signal.sound) {
        const samples = readCsv(new TextDecoder().decode(buffer), signal.names, channels);
        return await play(samples, file.name);
      }
      const wav = readWav(buffer);
      if (wav && wav.rate === rate && wav.channels === channels) return await play(wav.samples, file.name);
      const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(buffer);
      const samples = Int16Array.from(sound.getChannelData(0), (value) => chip.raw(32768 * value));
      return await play(samples, `${file.name}, read by the browser: its first channel, at ${rate} Hz`);
    } catch (error) {
      return view.say(`${file.name} cannot be read: ${error.message}`);
    }
  };
  const listen = async () => {
    let stream = null;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
      const context = new AudioContext({ sampleRate: rate });
      // A worklet would need a script of its own, which the policy of this page forbids.
      const analyser = context.createAnalyser();
      analyser.fftSize = 32768;
      context.createMediaStreamSource(stream).connect(analyser);
      const tail = new TailOf(analyser);
      begin();
      const timer = setInterval(() => push(Int16Array.from(tail.read(context.currentTime * rate), (value) => chip.raw(32768 * value))), 50);
      setSource(() => { clearInterval(timer); stream.getTracks().forEach((track) => track.stop()); context.close(); });
      view.say(`Listening at ${rate} Hz, resampled by the browser.`);
    } catch {
      stream?.getTracks().forEach((track) => track.stop());
      view.say("No microphone here: browsers allow it at https and localhost only. WAV file takes a recording, too.");
    }
  };
  const move = async () => {
    if (!window.DeviceMotionEvent) return view.say("This device has no motion sensor.");
    if (DeviceMotionEvent.requestPermission && (await DeviceMotionEvent.requestPermission()) !== "granted") return view.say("The motion sensor was refused.");
    begin();
    let [last, due] = [null, 0];
    const hear = ({ accelerationIncludingGravity: a, rotationRate: r, timeStamp }) => {
      if (typeof a?.x !== "number" || (channels === 6 && typeof r?.alpha !== "number")) return view.say("This device has no such motion sensor.");
      const unit = units.value === "g" ? 9.80665 : 1;
      const now = [a.x, a.y, a.z].map((value) => value / unit).concat(channels === 6 ? [r.alpha, r.beta, r.gamma] : []);
      if (last) {
        // The sensor has a rate of its own: samples lie on the lines between its values.
        for (; due <= timeStamp; due += 1000 / rate) {
          const part = (due - last.timeStamp) / (timeStamp - last.timeStamp || 1);
          push(Float32Array.from(now, (value, c) => last.now[c] + part * (value - last.now[c])));
        }
      } else due = timeStamp;
      last = { now, timeStamp };
    };
    window.addEventListener("devicemotion", hear);
    setSource(() => window.removeEventListener("devicemotion", hear));
    return view.say(`The motion sensor in ${units.value}${channels === 6 ? " and degrees a second" : ""}, at ${rate} samples a second.`);
  };
  const numbers = facts.numbers.length ? new Numbers(facts.numbers) : null;
  const units = create("select", { "aria-label": "unit of acceleration" }, ...["g", "m/s²"].map((unit) => create("option", {}, unit)));
  units.value = signal.unit;
  if (facts.hop) {
    if (signal.sound) view.tools.append(button("Microphone", listen));
    else if (rate && (channels === 3 || channels === 6)) view.tools.append(button("Motion sensor", move), units);
    view.tools.append(fileInput(signal.sound ? "WAV file" : "CSV file", signal.sound ? "audio/*" : ".csv,text/csv", document.body, open), stop);
  }
  view.inputs.append(picture, ...(numbers ? numbers.rows : []), view.tools, view.message, list);
  return (values, label) => {
    begin();
    waiting = Array.from(values.subarray(0, signal.window * channels));
    draw(Math.ceil(signal.window / COLUMNS), Math.max(1, Math.floor(COLUMNS / signal.window)));
    view.show(chip.predict(values), label);
  };
}

/** Sliders of the numbers beside a window. */
class Numbers {
  constructor(abouts) {
    this.fields = abouts.map((about) => new Field(about, () => {}));
    this.rows = this.fields.map((field) => field.row);
  }

  values() {
    return this.fields.map((field) => field.get());
  }
}
