// An image: draw, open a picture or use the camera; resized in the integers of the firmware.

/** Sum areas along one axis, as tinykernel.resizing does: n outputs of `length` inputs, in n-ths. */
function areaSums(values, length, n, lines, stride, step) {
  const sums = new Float64Array(n * lines);
  for (let line = 0; line < lines; line++) {
    for (let i = 0; i < n; i++) {
      for (let at = Math.floor((i * length) / n); at * n < (i + 1) * length; at++) {
        const overlap = Math.min((i + 1) * length, (at + 1) * n) - Math.max(i * length, at * n);
        sums[line * n + i] += overlap * values[line * stride + at * step];
      }
    }
  }
  return sums;
}

/** Crop the centre of one channel, and resize it to rows x columns with one rounding. */
function resize(pixels, height, width, rows, columns) {
  let [top, left, high, wide] = [0, 0, height, width];
  if (width * rows > height * columns) {
    wide = Math.max(1, Math.floor((height * columns) / rows));
    left = Math.floor((width - wide) / 2);
  } else {
    high = Math.max(1, Math.floor((width * rows) / columns));
    top = Math.floor((height - high) / 2);
  }
  const across = areaSums(pixels.subarray(top * width + left), wide, columns, high, width, 1);
  const both = areaSums(across, high, rows, columns, 1, columns);
  const area = high * wide;
  return Uint8Array.from({ length: rows * columns }, (_, k) => {
    const sum = both[(k % columns) * rows + Math.floor(k / columns)];
    return Math.floor((2 * sum + area) / (2 * area));
  });
}

const grey = (red, green, blue) => (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
const clip = (value) => Math.min(Math.max(value, 0), 255);
const ENCODERS = {
  grey8: (r, g, b) => [grey(r, g, b)],
  rgb888: (r, g, b) => [r, g, b],
  rgb565: (r, g, b) => [(r & 248) | (g >> 5), ((g << 3) & 224) | (b >> 3)],
  rgb565le: (r, g, b) => [((g << 3) & 224) | (b >> 3), (r & 248) | (g >> 5)],
  // Two pixels share a colour: the even one has U, the odd one V.
  yuyv: (r, g, b, x) => [grey(r, g, b), x % 2
    ? clip(128 + ((32768 * r - 27439 * g - 5329 * b + 32768) >> 16))
    : clip(128 + ((-11059 * r - 21709 * g + 32768 * b + 32768) >> 16))],
};

/** Show an image; return what shows a row of the test data. */
function showImage(chip, view) {
  const { facts } = chip;
  const { rows, columns, channels, frame, low, high } = facts.image;
  const zoom = Math.max(1, Math.floor(256 / Math.max(rows, columns)));
  const [width, height] = frame ? [frame.width, frame.height] : [columns * zoom, rows * zoom];
  const paper = create("canvas", { width, height, className: "paper" });
  paper.setAttribute("role", "img");
  paper.setAttribute("aria-label", "draw here");
  const pen = paper.getContext("2d", { willReadFrequently: true });
  const eye = create("canvas", { width: columns, height: rows, className: "eye" });
  eye.setAttribute("aria-label", `the picture as the chip sees it, ${columns} x ${rows}`);
  eye.setAttribute("role", "img");
  const glass = eye.getContext("2d", { willReadFrequently: true });
  const dark = create("input", { type: "checkbox", onchange: () => clear() });
  let video = null;
  let isExample = false;
  let last = null;

  /** Paint what the model computes from: bytes of an image of rows x columns. */
  const paint = (bytes) => {
    const image = glass.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = bytes[channels * i + (channels === 3 ? c : 0)];
      image.data[4 * i + 3] = 255;
    }
    glass.putImageData(image, 0, 0);
  };
  const look = () => {
    const { data } = pen.getImageData(0, 0, width, height);
    const n = width * height;
    const planes = Array.from({ length: channels }, (_, c) => Uint8Array.from({ length: n }, (_, i) => (
      channels === 3 ? data[4 * i + c] : grey(data[4 * i], data[4 * i + 1], data[4 * i + 2]))));
    const small = planes.map((plane) => resize(plane, height, width, rows, columns));
    const bytes = Uint8Array.from({ length: rows * columns * channels }, (_, k) => small[k % channels][Math.floor(k / channels)]);
    paint(bytes);
    if (!frame) return bytes;
    const encode = ENCODERS[frame.format];
    return Uint8Array.from(Array.from({ length: n }, (_, i) => encode(data[4 * i], data[4 * i + 1], data[4 * i + 2], i % width)).flat());
  };
  const update = (remark = "") => {
    const bytes = look();
    const values = frame || (low === 0 && high === 255) ? bytes : Array.from(bytes, (byte) => low + (byte * (high - low)) / 255);
    view.show(chip.predict(values), remark);
  };
  const stopCamera = () => {
    video?.srcObject.getTracks().forEach((track) => track.stop());
    video = null;
    camera.textContent = "Camera";
  };
  const clear = () => {
    stopCamera();
    isExample = false;
    pen.fillStyle = dark.checked ? "#fff" : "#000";
    pen.fillRect(0, 0, width, height);
    update();
  };
  const draw = (event) => {
    const box = paper.getBoundingClientRect();
    const point = [((event.clientX - box.left) * width) / box.width, ((event.clientY - box.top) * height) / box.height];
    pen.strokeStyle = dark.checked ? "#000" : "#fff";
    pen.lineWidth = Math.max(width, height) / 9;
    pen.lineCap = "round";
    pen.beginPath();
    pen.moveTo(...(last || point));
    pen.lineTo(point[0] + 0.01, point[1]);
    pen.stroke();
    last = point;
    update();
  };
  paper.onpointerdown = (event) => { if (isExample) clear(); paper.setPointerCapture(event.pointerId); draw(event); };
  paper.onpointermove = (event) => { if (last) draw(event); };
  paper.onpointerup = paper.onpointercancel = () => { last = null; };

  /** Put the centre of a picture, as large as possible, on the paper. */
  const place = (picture, wide, tall) => {
    const scale = Math.max(width / wide, height / tall);
    pen.fillStyle = "#fff"; // behind what is transparent, as in training
    pen.fillRect(0, 0, width, height);
    [pen.imageSmoothingEnabled, pen.imageSmoothingQuality] = [true, "high"];
    pen.drawImage(picture, (width - wide * scale) / 2, (height - tall * scale) / 2, wide * scale, tall * scale);
    update();
  };
  const open = async (file) => {
    try {
      const picture = await createImageBitmap(file);
      stopCamera();
      isExample = false;
      place(picture, picture.width, picture.height);
    } catch {
      view.say(`${file.name} is no picture that this browser reads`);
    }
  };
  const camera = button("Camera", async () => {
    if (video) return stopCamera();
    camera.disabled = true;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      video = create("video", { srcObject: stream, muted: true, playsInline: true });
      await video.play();
      camera.textContent = "Stop";
      const next = () => {
        if (!video) return;
        place(video, video.videoWidth, video.videoHeight);
        requestAnimationFrame(next);
      };
      next();
    } catch {
      stopCamera();
      view.say("No camera here: browsers allow it at https and localhost only. Picture takes a photo, too.");
    }
    camera.disabled = false;
    return undefined;
  });
  view.tools.append(button("Clear", clear), fileInput("Picture", "image/*", document.body, open), camera,
    create("label", {}, dark, " dark on light"));
  view.inputs.append(create("div", { className: "pair" },
    create("figure", {}, paper, create("figcaption", {}, "Draw here, or drop a picture.")),
    create("figure", {}, eye, create("figcaption", {}, `The ${columns} x ${rows} pixels that the chip sees.`))), view.tools, view.message);
  clear();
  return (values, label) => {
    const scaled = Uint8ClampedArray.from(values, (value) => (255 * (value - low)) / (high - low || 1));
    stopCamera();
    if (frame) {
      // Its pixels have the format of a camera, which this page only writes.
      pen.clearRect(0, 0, width, height);
      glass.clearRect(0, 0, columns, rows);
    } else {
      paint(scaled);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(eye, 0, 0, width, height);
    }
    isExample = true;
    view.show(chip.predict(values), label);
  };
}
