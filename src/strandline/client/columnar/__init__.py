"""Records as columns: Arrow tables from record batches and back, without a Python object per record.

Needs the extra `strandline[columnar]` (pyarrow, numpy, and numba where it is to be fast). Nothing outside of this
package imports those, and nothing imports this package before the first table is asked for.
"""
