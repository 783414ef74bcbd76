"""Hidden causes that move many dimensions at once."""
