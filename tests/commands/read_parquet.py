"""Compares the Parquet files of an export with its NDJSON files, row by row, by readers that are not ours.

usage: read_parquet.py PARQUET_DIR NDJSON_DIR

Exit code 77: neither pyarrow nor duckdb is installed.
"""

import glob
import json
import math
import os
import sys


def with_pyarrow(path):
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(path)
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        values = file.read_row_group(number).to_pydict()
        for column in range(group.num_columns):
            check_statistics(path, group.column(column), values[group.column(column).path_in_schema])
    return file.read().to_pylist()


def check_statistics(path, column, values):
    """What engines skip by must be true."""
    values = [value for value in values if value is not None and value == value]
    if not values:
        return
    statistics = column.statistics
    place = f"{path}: {column.path_in_schema}"
    if isinstance(values[0], float) and not (statistics and statistics.has_min_max):
        # The order of floating-point numbers is newly defined in Parquet: a reader that does not know it must not use them.
        return
    assert statistics is not None and statistics.has_min_max, f"{place}: no statistics"
    least, most = min(values), max(values)
    if isinstance(least, str):
        # They may be cut.
        texts = [value.encode() for value in values]
        low, high = statistics.min.encode(), statistics.max.encode()
        assert low <= min(texts) and max(texts) <= high, f"{place}: {low} {high}"
    else:
        assert (statistics.min, statistics.max) == (least, most), f"{place}: {statistics}"


def with_duckdb(path):
    import duckdb

    found = duckdb.connect().execute("SELECT * FROM read_parquet(?, hive_partitioning = false)", [path])
    names = [column[0] for column in found.description]
    return [dict(zip(names, row)) for row in found.fetchall()]


def readers():
    for module, read in [("pyarrow.parquet", with_pyarrow), ("duckdb", with_duckdb)]:
        try:
            __import__(module)
            yield module, read
        except ImportError:
            print(f"NOT RUN: {module} is not installed")



def same(one, other):
    if isinstance(one, float) and isinstance(other, (float, str)):
        other = float(other)
        return one == other or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


def main():
    parquet, ndjson = sys.argv[1:]
    found = list(readers())
    if not found:
        sys.exit(77)
    paths = sorted(glob.glob(f"{glob.escape(parquet)}/*/dump=*/part-*.parquet"))
    assert paths and os.path.exists(f"{parquet}/_SUCCESS")
    rows = 0
    for path in paths:
        place = os.path.relpath(path, parquet).removesuffix(".parquet")
        with open(f"{ndjson}/{place}.ndjson", encoding="utf-8") as lines:
            expected = [json.loads(line) for line in lines.read().split("\n")[:-1]]
        rows += len(expected)
        for module, read in found:
            got = read(path)
            assert len(got) == len(expected), f"{place}: {module}: {len(got)} rows instead of {len(expected)}"
            for number, (one, other) in enumerate(zip(got, expected)):
                assert one.keys() == other.keys(), f"{place}: {module}: {one.keys()}"
                for key in one:
                    is_same = same(one[key], other[key])
                    assert is_same, f"{place}: {module}: row {number}: {key}: {one[key]!r}, not {other[key]!r}"
    print(f"{rows} rows in {len(paths)} files, by {', '.join(module for module, _ in found)}")


if __name__ == "__main__":
    main()
