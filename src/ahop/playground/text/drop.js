// Files go to the server as text in the value, and never to its disk: [{"name": ..., "data": base64}, ...].
// Gradio runs the filled template as code: every sign of a file's name becomes a number.
const safe = (name) => [...name].map((sign) => `&#${sign.codePointAt(0)};`).join("");

element.addEventListener("change", async (event) => {
  const chosen = [...event.target.files];
  const most = Number(event.target.dataset.bytes);
  // So that a file that was mended can be chosen again: a browser says nothing of the same name twice.
  event.target.value = "";
  const read = (file) =>
    new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve({ name: file.name, data: String(reader.result).split(",")[1] ?? "" });
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
  // Of one that is too large only the name is sent, and the server says so.
  const small = chosen.map((file) => (file.size <= most ? read(file) : { name: file.name, data: null }));
  props.sent = chosen.map((file) => safe(file.name)).join(", ");
  props.value = JSON.stringify(await Promise.all(small));
  trigger("upload");
});
