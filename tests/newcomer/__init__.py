"""Files of somebody who has only installed the package: they import nothing of this repository.

`bench/first_hour.py` copies them into fresh environments, one for each Python.
"""
