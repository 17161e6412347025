"""The output of commands: tables and colour on a terminal, plain text in a pipe, JSON for programs."""
