"""The five parts of the page: each lays out its pieces and says what follows from what."""
