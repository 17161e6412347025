"""Record batches as columns: Arrow tables from record batches and back, without a Python object per record.

It needs the extra `strandline[columnar]` (pyarrow, numpy, and numba where it is to be fast). Only this package,
`producer.send_table` and `consumer.poll_table` import those, and they are loaded with the first table.
"""
