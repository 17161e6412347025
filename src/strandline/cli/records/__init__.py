"""`strandline produce` and `strandline consume`: records from lines, files and JSON rows, and back."""
