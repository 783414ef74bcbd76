// Cells of a picture are painted by finger or mouse; the value is JSON: {"cells": [...], "shades": [...]}.
let shade = 1;
let strokes = new Map();
let drawing = false;

const grey = (value) => `rgb(${[0, 0, 0].map(() => Math.round((value + 1) * 127.5)).join(",")})`;

function draw() {
  const canvas = element.querySelector("canvas");
  const picture = element.querySelector("img");
  if (!canvas || !picture) return;
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  if (picture.complete) pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  else picture.onload = draw;
  const [rows, columns] = [Number(canvas.dataset.rows), Number(canvas.dataset.columns)];
  const [height, width] = [canvas.height / rows, canvas.width / columns];
  for (const [cell, value] of strokes) {
    pen.fillStyle = grey(value);
    pen.fillRect((cell % columns) * width, Math.floor(cell / columns) * height, width, height);
  }
  for (const button of element.querySelectorAll("[data-shade]"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.shade) === shade));
}

function paint(event) {
  const canvas = element.querySelector("canvas");
  const box = canvas.getBoundingClientRect();
  const [rows, columns] = [Number(canvas.dataset.rows), Number(canvas.dataset.columns)];
  const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
  const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
  if (row < 0 || column < 0 || row >= rows || column >= columns) return;
  strokes.set(row * columns + column, shade);
  draw();
}

function tell() {
  props.value = JSON.stringify({ cells: [...strokes.keys()], shades: [...strokes.values()] });
  // Not "change": Gradio sends that too, and of two questions at a time it may lose an answer.
  trigger("input");
}

element.addEventListener("pointerdown", (event) => {
  if (event.target.tagName !== "CANVAS") return;
  event.preventDefault();
  drawing = true;
  paint(event);
});
element.addEventListener("pointermove", (event) => drawing && paint(event));
// A stroke may end outside of the picture, or be taken away by the browser.
for (const end of ["pointerup", "pointercancel"])
  window.addEventListener(end, () => {
    if (!drawing) return;
    drawing = false;
    tell();
  });
element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.shade) shade = Number(button.dataset.shade);
  else {
    strokes = new Map();
    tell();
  }
  draw();
});
// Another picture comes without paint.
watch(["value", "picture"], () => {
  if (!props.value) strokes = new Map();
  draw();
});
draw();
