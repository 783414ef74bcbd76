"""``python -m ahop_paper``, for where the command ``ahop-paper`` is not on the path."""

from ahop_paper.commands import app

if __name__ == "__main__":
    app()
