// A table: a slider or a menu for each input, and what each alone would change.

const STEPS = 40;
const MOST_OPEN = 64;

class Field {
  constructor(about, changed) {
    const { name, low, high, texts, gap, whole } = about;
    this.about = about;
    this.curve = create("canvas", { width: 2 * STEPS, height: 20, title: `the answer over the range of ${name}` });
    this.curve.setAttribute("role", "img");
    const edited = (input) => () => { this.set(Number(input.value), input); changed(); };
    if (texts) {
      this.value = create("select", { "aria-label": name }, ...texts.map((text, code) => create("option", { value: code }, text)));
    } else {
      const step = whole ? 1 : 10 ** Math.floor(Math.log10((high - low || 1) / 100));
      this.value = create("input", { type: "number", step: "any", "aria-label": name });
      this.slider = create("input", { type: "range", min: low, max: high, step, "aria-label": `${name}, slider` });
      this.slider.oninput = edited(this.slider);
    }
    this.value.oninput = edited(this.value);
    this.missing = gap === null ? null : create("input", { type: "checkbox", "aria-label": `${name} is missing`, onchange: changed });
    const range = texts ? `${texts.length} texts` : `${short(low)} to ${short(high)}`;
    this.row = create("div", { className: "field" },
      create("span", { className: "name", title: `${name}: ${range}` }, name), this.slider || "", this.value,
      this.missing ? create("label", { className: "gap" }, this.missing, "missing") : "", this.curve);
    this.current = texts ? 0 : whole ? Math.round((low + high) / 2) : (low + high) / 2;
    this.set(this.current);
  }

  get() {
    return this.missing?.checked ? Number(this.about.gap) : this.current;
  }

  /** Set the value, and show it in all inputs but the one that it comes from. */
  set(value, source = null) {
    const isGap = this.missing !== null && Object.is(value, Number(this.about.gap));
    if (this.missing) this.missing.checked = isGap;
    if (isGap) return;
    this.current = value;
    if (this.value !== source) this.value.value = this.about.texts || this.about.whole ? value : Number.isFinite(value) ? Number(value.toPrecision(6)) : "";
    if (this.slider && this.slider !== source) this.slider.value = value;
  }

  /** List values over the range. */
  values() {
    const { texts, low, high } = this.about;
    if (texts) return texts.map((_, code) => code);
    return Array.from({ length: STEPS }, (_, i) => low + ((high - low) * i) / (STEPS - 1));
  }

  /** Draw the answers over the range: labels as colours as high as their margin, or a value as a line. */
  draw(answers, isValue) {
    const { width, height } = this.curve;
    const pen = this.curve.getContext("2d");
    const style = getComputedStyle(this.curve);
    const step = width / answers.length;
    const heights = answers.map(({ scores }) => {
      const [best, second] = [...scores].sort((a, b) => b - a);
      return isValue ? scores[0] : best - second;
    });
    const low = isValue ? Math.min(...heights) : 0;
    const span = Math.max(...heights) - low || 1;
    pen.clearRect(0, 0, width, height);
    answers.forEach(({ label }, i) => {
      pen.fillStyle = style.getPropertyValue(isValue ? "--c0" : `--c${label < 0 ? 5 : label % 9}`);
      const top = (height - 3) * (1 - (heights[i] - low) / span);
      pen.fillRect(i * step, top, step, isValue ? 3 : height - top);
    });
  }
}

/** Show a table; return what sets the inputs to a row. */
function showTable(chip, view) {
  const { facts } = chip;
  const row = new Array(facts.inputs).fill(0);
  let remark = "";
  let waiting = false;
  const update = () => {
    fields.forEach((field) => { row[field.about.at] = field.get(); });
    const answer = chip.predict(row);
    view.show(answer, remark);
    if (waiting || !facts.curves) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      fields.forEach((field) => {
        const other = [...row];
        field.draw(field.values().map((value) => { other[field.about.at] = value; return chip.predict(other); }), !facts.classes);
      });
    });
  };
  const changed = () => { remark = ""; update(); };
  const fields = facts.fields.map((about) => new Field(about, changed));
  const rows = fields.map((field) => field.row);
  view.inputs.append(view.tools, view.message, ...rows.slice(0, MOST_OPEN));
  if (rows.length > MOST_OPEN) {
    const more = facts.more ? `; ${facts.more} others keep the values of the row` : "";
    view.inputs.append(create("details", {}, create("summary", {}, `${rows.length - MOST_OPEN} more inputs${more}`), ...rows.slice(MOST_OPEN)));
  }
  if (facts.curves) view.say(facts.classes
    ? "Each strip: the label (colour) and its margin (height) if this input alone moves over its range."
    : "Each strip: the value if this input alone moves over its range.");
  changed();
  return (values, label) => {
    fields.forEach((field) => field.set(values[field.about.at]));
    values.forEach((value, i) => { row[i] = value; });
    remark = label;
    update();
  };
}
