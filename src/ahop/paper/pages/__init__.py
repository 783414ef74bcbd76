"""What is made of results: the tables of the README."""
