"""Ten faults that every consumer and producer should survive, set against a program in any language.

`run.Torture` runs trials; `trials.py` has the faults; `program.py` runs the program; `verdict.py` judges what it said.
"""
