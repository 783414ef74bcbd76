"""The page: five parts, a theme that fetches nothing, and a server that listens on this computer alone."""

from __future__ import annotations

import os
import socket
from typing import Any

from ahop._extras import require
from ahop.playground import sent, widgets
from ahop.playground.tabs import energy, footprint, learn, recall, yours

_HEAD = """
# Playground
Memories at work: damage a picture and see what comes back. Everything runs on this computer.
"""
_FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def build() -> Any:
    """The page as Gradio has it."""
    require("gradio", extra="playground")
    import gradio as gr

    with gr.Blocks(title="ahop playground", analytics_enabled=False) as page:
        gr.Markdown(_HEAD)
        uploaded = gr.State(None)
        with gr.Tabs():
            for title, part in (("Recall", recall), ("Learn", learn), ("Footprint", footprint)):
                with gr.Tab(title):
                    part.lay_out(uploaded)
            with gr.Tab("Energy"):
                energy.lay_out()
            with gr.Tab("Your data"):
                yours.lay_out()
    return page


def start(host: str = "127.0.0.1", port: int = 7860, *, browser: bool = True) -> Any:
    """The page, served in the background; its ``block_thread`` waits until somebody stops it.

    Args:
        host: Where to listen; the default is this computer alone.
        port: Where a browser finds it.
        browser: Whether to open one.
    """
    _require_free(host, port)
    # Before the first import, which reads it.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    require("gradio", extra="playground")
    import gradio as gr

    page = build()
    page.launch(
        server_name=host,
        server_port=port,
        inbrowser=browser,
        prevent_thread_lock=True,
        share=False,
        quiet=True,
        ssr_mode=False,
        # Fonts by name come from the system; Gradio's own default would be fetched.
        theme=gr.themes.Default(font=_FONT, font_mono=_MONO),
        # Not as ``css``, of which Gradio lets no rule reach the frame around its pieces.
        head=f"<style>{widgets.read('style.css')}</style>",
        footer_links=[],
        # Files come to the address below and stay in memory: nobody is to write to the disk.
        max_file_size=1,
    )
    page.app.router.add_route(f"/{sent.ADDRESS}", sent.keep, methods=["POST"])
    return page


def _require_free(host: str, port: int) -> None:
    """Refuse a place where nobody can listen; before the page is built, which takes seconds."""
    if not 1 <= port <= 65535:
        raise ValueError(f"port must be between 1 and 65535, got {port}")
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        # Python adds the address to what the system says; names that nobody knows have negative numbers.
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise ValueError(f"the page cannot be at {host}, port {port}: {why}") from error
