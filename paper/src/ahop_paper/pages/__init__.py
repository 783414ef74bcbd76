"""What is made of results: tables, and documents that show them."""
