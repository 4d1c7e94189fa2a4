#!/usr/bin/env python3
"""Asks the questions of docs/fleet.md of the tables that `hprof-cli export` wrote.

usage: fleet.py DIR [--engine duckdb|spark] [--master URL] [--question N]... [--rows N] [--page FILE]

  fleet.py lake                                                      all questions, by DuckDB, on this machine
  fleet.py lake --engine spark                                       by Spark, on this machine with all cores
  fleet.py s3a://heaps/lake --engine spark --master spark://host:7077   on a cluster
  fleet.py lake --question 7 --question 13

Needs duckdb or pyspark (PyPI); Spark needs Java 17.
"""
import argparse
import pathlib
import re
import sys
import time

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGE, SCHEMA = DOCS / "fleet.md", DOCS / "json-schema.md"


def questions(page: pathlib.Path = PAGE) -> tuple[list[str], dict[int, tuple[str, str]]]:
    """The views, and the questions by number: title and SQL."""
    text = page.read_text(encoding="utf-8")
    before, numbered = text.split("\n## Thirty questions\n")
    views = re.findall(r"```sql\n(.*?)```", before, re.DOTALL)
    found = re.findall(r"\n### (\d+)\. ([^\n]*)\n.*?```sql\n(.*?)```", numbered, re.DOTALL)
    return views, {int(number): (title, sql) for number, title, sql in found}


# DuckDB and Spark know all of these names.
TYPES = {"id": "BIGINT", "integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN", "text": "STRING", "name": "STRING"}


def implied(column: str) -> str:
    """The type that a name says."""
    if column.startswith("is_"):
        return "boolean"
    return "real" if column.endswith("_percent") else "id" if column.endswith("_object") else "integer"


def schema(page: pathlib.Path = SCHEMA) -> dict[str, dict[str, str]]:
    """The columns of each table, with their types, which the page leaves out where the name says them.

    CSV and JSON do not state types, and guesses are wrong: a release 1.10 is no number, and an empty column no text.
    """
    tables = {}
    section = page.read_text(encoding="utf-8").split("\n## Tables\n")[1]
    for name, columns in re.findall(r"^\*\*`(\w+)`\*\*: .*\n\n([^.\n]*)", section, re.MULTILINE):
        found = re.findall(r"`(\w+)`\?? ?(\w*)", columns)
        tables[name] = {column: TYPES[kind or implied(column)] for column, kind in found}
    return tables


def format_of(directory: str) -> str:
    """The format of the files of a directory on this machine; of one elsewhere Parquet."""
    kinds = [kind for kind in ("parquet", "csv", "ndjson") if any(pathlib.Path(directory).glob(f"*/dump=*/*.{kind}"))]
    if len(kinds) > 1:
        sys.exit(f"{directory} has files of several formats: {', '.join(kinds)}; export all dumps with the same --format")
    return kinds[0] if kinds else "parquet"


class DuckDb:
    """The tables of a directory in DuckDB."""

    def __init__(self, directory: str, tables: list[str]) -> None:
        import duckdb

        self.connection = duckdb.connect()
        kind, columns = format_of(directory), schema()
        read = {
            "parquet": "read_parquet('{files}', {hive})",
            # An empty cell is null, and an empty text is in quotes.
            "csv": "read_csv('{files}', {hive}, columns = {columns}, auto_detect = false, header = true, delim = ',', "
                   "quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, max_line_size = 16777216)",
            "ndjson": "read_json('{files}', {hive}, columns = {columns}, format = 'newline_delimited')",
        }[kind]
        for table in tables:
            files = f"{directory}/{table}/dump=*/*.{kind}".replace("'", "''")
            hive = "hive_partitioning = true, hive_types = {'dump': VARCHAR}"
            rows = read.format(files=files, hive=hive, columns=columns[table])
            self.connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {rows}")

    def run(self, sql: str) -> tuple[list[str], list[tuple]]:
        """Column names and rows of a query."""
        answer = self.connection.execute(sql)
        return [column[0] for column in answer.description or []], answer.fetchall()


class Spark:
    """The tables of a directory in Spark."""

    def __init__(self, directory: str, tables: list[str], master: str = "local[*]") -> None:
        from pyspark.sql import SparkSession

        self.spark = (
            SparkSession.builder.master(master).appName("heap dumps")
            # A dump may be called 2024 or true.
            .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
            .config("spark.sql.shuffle.partitions", "8" if master.startswith("local") else "200")
            # On this machine all of Spark is the driver, and its default of 1 GB is too little for joins of millions of rows.
            .config("spark.driver.memory", "4g" if master.startswith("local") else "1g")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")
        kind, columns = format_of(directory), schema()
        for table in tables:
            rows = self.spark.read
            if kind == "parquet":
                rows = rows.parquet(f"{directory}/{table}")
            else:
                rows = rows.schema(", ".join(f"`{name}` {of}" for name, of in columns[table].items()))
                if kind == "csv":
                    rows = rows.csv(f"{directory}/{table}", header=True, escape='"', multiLine=True)
                else:
                    rows = rows.json(f"{directory}/{table}")
            rows.createOrReplaceTempView(table)

    def run(self, sql: str) -> tuple[list[str], list[tuple]]:
        """Column names and rows of a query."""
        # What is a view of the session stays in it.
        answer = self.spark.sql(re.sub(r"^\s*CREATE VIEW", "CREATE TEMPORARY VIEW", sql))
        return answer.columns, [tuple(row) for row in answer.collect()]


TABLES = (
    "arrays classes dumps fields frames labels loaders locals objects places refs roots strings suspects threads waste".split()
)


def shown(value: object) -> str:
    """A value for people."""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--engine", choices=["duckdb", "spark"], default="duckdb")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--question", type=int, action="append")
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--page", type=pathlib.Path, default=PAGE)
    arguments = parser.parse_args()
    views, asked = questions(arguments.page)
    if arguments.engine == "duckdb":
        engine = DuckDb(arguments.directory, TABLES)
    else:
        engine = Spark(arguments.directory, TABLES, arguments.master)
    for view in views:
        engine.run(view)
    for number in arguments.question or asked:
        if number not in asked:
            sys.exit(f"there is no question {number}; there are {min(asked)} to {max(asked)}")
        title, sql = asked[number]
        start = time.monotonic()
        columns, rows = engine.run(sql)
        cells = [columns, *([shown(value) for value in row] for row in rows[: arguments.rows])]
        widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
        print(f"\n{number}. {title}  ({time.monotonic() - start:.2f} s)")
        for row in cells:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if len(rows) > arguments.rows:
            print(f"  … {len(rows) - arguments.rows} more rows (--rows)")


if __name__ == "__main__":
    main()
