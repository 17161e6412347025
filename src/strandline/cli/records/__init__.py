"""`strandline produce` and `strandline consume`: write records from lines, files and JSON rows, and print them."""
