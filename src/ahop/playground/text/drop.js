// Files go to the server's memory, never to its disk; the value names them: [{"name": ..., "key": ...}, ...].
// Gradio runs the filled template as code: every sign of a file's name becomes a number.
const safe = (name) => [...name].map((sign) => `&#${sign.codePointAt(0)};`).join("");

async function send(file, most) {
  // One that is too large is only named, and the server says so.
  if (file.size > most) return { name: file.name, key: null };
  const headers = { "Content-Type": "application/octet-stream" };
  const answer = await fetch("kept", { method: "POST", headers, body: file });
  return { name: file.name, key: answer.ok ? await answer.text() : "" };
}

element.addEventListener("change", async (event) => {
  const chosen = [...event.target.files];
  const most = Number(event.target.dataset.bytes);
  // So that a file that was mended can be chosen again: a browser says nothing of the same name twice.
  event.target.value = "";
  props.value = JSON.stringify(await Promise.all(chosen.map((file) => send(file, most))));
  // Only now: who sees the name may go on.
  props.sent = chosen.map((file) => safe(file.name)).join(", ");
  trigger("upload");
});
