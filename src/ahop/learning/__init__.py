"""How a similarity is learned. Nothing here knows a memory, or which similarity it teaches."""
