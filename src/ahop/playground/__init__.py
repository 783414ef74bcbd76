"""The playground: a local page to see memories at work. Its parts are plain functions; ``page`` alone needs Gradio."""
