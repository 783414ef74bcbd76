// A click on a picture chooses it; its number is the value.
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-index]");
  if (!button) return;
  props.value = button.dataset.index;
  // Not "change": Gradio sends that too.
  trigger("input");
});
