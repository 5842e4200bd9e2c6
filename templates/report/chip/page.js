// Start the firmware, prove it, and show what fits the inputs of the model.

const SHOWS = { table: showTable, image: showImage, signal: showStream };

async function startPage() {
  const facts = JSON.parse(document.getElementById("chip-facts").textContent);
  const proof = document.getElementById("chip-proof");
  try {
    const chip = await Chip.start(bytesOf(facts.module), facts);
    const [equal, all] = chip.prove(facts.vectors);
    const whole = equal === all && chip.core.tk_fingerprint() >>> 0 === parseInt(facts.fingerprint, 16);
    proof.textContent = `${equal} of ${all} ${facts.classes ? "scores" : "values"} equal Python's: this page runs the C of the chip, model ${facts.fingerprint}`;
    proof.classList.add(whole ? "good" : "bad");
    if (!whole) proof.textContent += ": this page or this browser computes something else";
    const root = document.getElementById("chip");
    const view = new View(root, facts);
    const show = SHOWS[facts.kind](chip, view);
    const raw = new ARRAYS[facts.type](bytesOf(facts.vectors.inputs).buffer);
    let row = -1;
    const next = () => {
      row = (row + 1) % facts.vectors.rows;
      const label = facts.vectors.labels ? `true label: ${facts.vectors.labels[row]}` : "";
      show(raw.slice(row * facts.inputs, (row + 1) * facts.inputs), `row ${row + 1}${label && ", "}${label}`);
    };
    view.tools.append(button(facts.vectors.labels ? "Next test row" : "Next example", next));
    if (facts.kind === "signal" || facts.vectors.labels) next();
    document.documentElement.dataset.chip = "ready";
  } catch (error) {
    proof.textContent = `The model does not start in this browser: ${error.message}`;
    proof.classList.add("bad");
  }
}

startPage();
