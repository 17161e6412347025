"""Decodes Avro values into Arrow columns, by given schemas; see `decoding`. It needs the packages of the extra
`columnar`.
"""
