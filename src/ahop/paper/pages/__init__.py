"""What is made of results: tables, documents and the page."""
