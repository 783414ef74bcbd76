"""Commands that were here once, and say where they are now."""

from __future__ import annotations

import typer

from ahop.cli.common import app, plain_errors

# They belong to the experiments, which have a package of their own.
MOVED = (
    *("ablations", "claims", "figures", "generators", "images", "mil", "multimodal"),
    *("paper", "real", "report", "retrieval", "tabular", "timing", "worlds"),
)


def is_now(before: str, now: str) -> ValueError:
    """What to say of a command that is no longer here."""
    return ValueError(f"ahop {before} is now ahop-paper {now}: pip install ahop-paper")


def _tell(context: typer.Context) -> None:
    raise is_now(str(context.info_name), str(context.info_name))


for _name in MOVED:
    # Whatever was asked of it, help among it, the answer is the same.
    app.command(
        _name,
        hidden=True,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(plain_errors(_tell))
