// What every kind of model shows: its answer, a bar a score, and the proof.

// Names up to this length have room in two columns of a telephone.
const MOST_LETTERS = 8;

/** Create an element: properties, event handlers as onclick, and children (text is never markup). */
function create(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Create a button. */
function button(text, onclick) {
  return create("button", { type: "button", onclick }, text);
}

/** Write a number with few digits. */
function short(value) {
  return String(Number(value.toPrecision(5)));
}

/** Return the middle of quantiles of one value, named as "value q0.9", and their interval in words; null for others. */
function intervalOf(names, numbers) {
  const levels = names.map((name) => Number(/ q(0?\.\d+)$/.exec(name)?.[1]));
  if (names.length < 3 || levels.some(Number.isNaN)) return null;
  const order = levels.map((_, i) => i).sort((a, b) => levels[a] - levels[b]);
  const [first, last, middle] = [order[0], order.at(-1), order[Math.floor(order.length / 2)]];
  const share = short(100 * (levels[last] - levels[first]));
  return [numbers[middle], `${share} % within ${short(numbers[first])} to ${short(numbers[last])}`];
}

/** Ask for a file by a button, or by dropping it anywhere on `place`. */
function fileInput(text, accept, place, open) {
  const input = create("input", { type: "file", accept, onchange: () => {
    if (input.files[0]) open(input.files[0]);
    input.value = ""; // so that the same file can be chosen again
  } });
  place.addEventListener("dragover", (event) => event.preventDefault());
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  return create("label", { className: "file" }, text, input);
}

class View {
  constructor(root, facts) {
    this.facts = facts;
    this.inputs = create("div", { className: "inputs" });
    this.tools = create("div", { className: "tools" });
    this.title = create("b");
    this.detail = create("span");
    this.message = create("p", { className: "muted", role: "status" });
    const output = create("output", {}, this.title, this.detail);
    output.setAttribute("aria-live", "polite");
    this.bars = this.names().map((name) => {
      const bar = create("i");
      const value = create("span", { className: "n" });
      return { bar, value, row: create("div", { className: "score" }, create("span", { className: "name", title: name }, name), create("span", { className: "track" }, bar), value) };
    });
    const isLong = this.names().some((name) => name.length > MOST_LETTERS);
    const scores = create("div", { className: isLong ? "scores long" : "scores" }, ...this.bars.map(({ row }) => row));
    root.append(create("div", { className: "chip" }, this.inputs, create("div", { className: "answer" }, output, scores)));
  }

  names() {
    return this.facts.classes || this.facts.values.names;
  }

  /** Name the answer in words: a label, a refusal, or values. */
  words(answer) {
    const { classes, values } = this.facts;
    if (!classes) {
      const numbers = this.numbers(answer);
      return (intervalOf(values.names, numbers)?.slice(0, 1) || numbers).map(short).join(", ");
    }
    return answer.label < 0 ? "not sure" : classes[answer.label];
  }

  numbers({ scores }) {
    return scores.map((score) => score * 2 ** -this.facts.values.shift);
  }

  show(answer, remark = "") {
    const { classes, values, decision } = this.facts;
    this.title.textContent = this.words(answer);
    const notes = [];
    if (decision) {
      notes.push(answer.label < 0 ? "refused: the margin is too small" : `about ${Math.round((100 * (answer.confidence + 0.5)) / 256)} % of such answers are right`);
      if (decision.novelty !== null) notes.push(answer.novelty > decision.novelty ? "unlike the training data" : "like the training data");
    } else if (classes) {
      if (!remark) notes.push("the best score");
    } else {
      notes.push(...(intervalOf(values.names, this.numbers(answer))?.slice(1) || []));
    }
    if (remark) notes.push(remark);
    this.detail.textContent = notes.join("; ");
    const best = answer.scores.indexOf(Math.max(...answer.scores));
    const low = Math.min(...answer.scores, values ? 0 : Infinity);
    const width = Math.max(...answer.scores) - low || 1;
    this.bars.forEach(({ bar, value, row }, i) => {
      const score = answer.scores[i];
      bar.style.width = `${(100 * (score - low)) / width}%`;
      value.textContent = values ? short(score * 2 ** -values.shift) : score;
      row.classList.toggle("best", Boolean(classes) && i === best);
    });
  }

  /** Show that there is no answer yet. */
  clear() {
    this.title.textContent = "–";
    this.detail.textContent = "";
    this.bars.forEach(({ bar, value, row }) => {
      bar.style.width = 0;
      value.textContent = "";
      row.classList.remove("best");
    });
  }

  say(text) {
    this.message.textContent = text;
  }
}
