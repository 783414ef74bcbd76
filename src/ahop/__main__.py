"""``python -m ahop``, for where the command ``ahop`` is not on the path."""

from ahop.cli import app

if __name__ == "__main__":
    app()
