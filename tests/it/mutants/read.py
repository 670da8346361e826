"""Reads exports with other programs' libraries, and says whether two of them hold the same.

One request to a line on standard input, {"format": …, "path": …, "original": …}; one answer to a line on
standard output: {"same": true}, or {"same": false, "why": …}. What a file holds is brought into a normal
form: rows of typed values, formulas, links. It is coarse where `verify` may be: order, zeros at the end of
a decimal, two spellings of one instant, and null beside empty text do not count.
"""
import csv, datetime, decimal, gzip, io, json, re, sqlite3, subprocess, sys, warnings, zipfile
import xml.etree.ElementTree as ET

try:
    import openpyxl
except ImportError:
    openpyxl = None
try:
    import duckdb
    import pyarrow.parquet as pq
except ImportError:
    pq = None

KINDS = dict(batch_id="text", batch_name="text", batch_creation_date="date", crop_type="text",
             number_of_images="integer", total_cells_per_tray="integer", scanned_by_email="text",
             analysis_link="text", comment="text", warnings="boolean", extra="json",
             avg_germinated_seedlings="decimal", avg_non_germinated_seedlings="decimal",
             avg_germination_rate="decimal", avg_usable_seedlings="decimal", avg_non_usable_cells="decimal",
             avg_usable_seedling_rate="decimal", avg_coefficient_of_variation="decimal",
             avg_median_seedling_size_mm2="decimal")


warnings.simplefilter("ignore")


class Refused(Exception):
    pass


def kind(name):
    return KINDS.get(name, "unknown")


def known(names):
    """Columns of a batch; others may stand beside them in a table, and a note tells of `extra`."""
    return sorted(name for name in names if name in KINDS and name != "extra")


def number(text):
    """The value of a number, exactly, in one spelling."""
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    short = digits.rstrip("0")
    return f"{'-' if sign and short else ''}{short}e{exponent + len(digits) - len(short) if short else 0}"


def is_decimal(text):
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) is not None


def date(text):
    match = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8})(\.[0-9]+)?(Z|\+00:00)", text)
    if not match:
        # For Excel: a blank, and no zone.
        match = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8})(\.[0-9]+)?()", text)
    return match[1] + (match[2] or "").rstrip("0").rstrip(".") + "Z" if match else text


def from_text(name, text):
    """A value that stands as text in its file, as in csv."""
    what = kind(name)
    if text == "":
        return None
    if what in ("integer", "decimal") and is_decimal(text):
        return ["number", number(text)]
    if what == "date":
        return ["date", date(text)]
    return [what if what == "boolean" and text in ("true", "false") else "text", text]


class Number(str):
    """A number of JSON, as it is written."""


def pairs(found):
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise Refused(f"a key is repeated in {names}")
    return dict(found)


def constant(name):
    raise Refused(f"{name} is no JSON")


def loads(text):
    return json.loads(text, object_pairs_hook=pairs, parse_int=Number, parse_float=Number,
                      parse_constant=constant)


def deep(value):
    if isinstance(value, Number):
        return ["number", number(value)]
    if isinstance(value, dict):
        return {name: deep(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [deep(item) for item in value]
    return value


def from_json(name, value):
    what = kind(name)
    if value is None or value == "":
        return None
    if isinstance(value, Number):
        return ["number" if what in ("integer", "decimal") else "misplaced number", number(value)]
    if isinstance(value, bool):
        return ["boolean" if what == "boolean" else "misplaced boolean", str(value).lower()]
    if isinstance(value, str):
        if what == "decimal" and is_decimal(value):
            return ["number", number(value)]
        if what == "date":
            return ["date", date(value)]
        return ["text", value]
    return ["json", deep(value)]


def from_object(batch):
    if not isinstance(batch, dict):
        raise Refused("a batch is no object")
    fields = {name: from_json(name, batch[name]) for name in known(batch)}
    others = {name: deep(value) for name, value in batch.items() if name not in fields}
    row = {name: value for name, value in fields.items() if value is not None}
    row["unknown"] = {name: value for name, value in others.items() if value is not None}
    return row


def key(row):
    return json.dumps(row, sort_keys=True)


def rows_of(rows):
    return sorted(rows, key=key)


def read_json(path, _):
    batches = loads(open(path, "rb").read().decode())
    if not isinstance(batches, list):
        raise Refused("it is no array")
    return {"rows": rows_of(from_object(batch) for batch in batches)}


def lines(text):
    for line in text.split("\n"):
        if line.strip(" \t\r"):
            yield loads(line)


def ndjson(text):
    return {"rows": rows_of(from_object(batch) for batch in lines(text))}


def read_ndjson(path, _):
    return ndjson(open(path, "rb").read().decode())


def read_gzip(path, _):
    return ndjson(gzip.open(path).read().decode())


def read_zstd(path, _):
    unpacked = subprocess.run(["zstd", "-dcq", path], capture_output=True)
    if unpacked.returncode:
        raise Refused(unpacked.stderr.decode(errors="replace"))
    return ndjson(unpacked.stdout.decode())


def read_singer(path, _):
    rows, schema, seen = [], None, []
    for message in lines(open(path, "rb").read().decode()):
        what = message["type"]
        seen.append(what)
        if what == "SCHEMA":
            if message["stream"] != "batches":
                raise Refused("the schema is that of another stream")
            schema = [deep(message["schema"]["properties"]), message["key_properties"]]
        elif what == "RECORD":
            if message["stream"] != "batches" or schema is None:
                raise Refused("a record has no schema")
            rows.append(from_object(message["record"]))
        elif what != "STATE":
            raise Refused(f"there is no message {what}")
    return {"rows": rows_of(rows), "schema": schema, "ends with a state": seen[-1] == "STATE"}


def table(text, delimiter):
    found = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    if not found:
        raise Refused("it has no header")
    header, rows = found[0], found[1:]
    if len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
        raise Refused("the table is not rectangular, or a column is there twice")
    cells = ({name: from_text(name, cell) for name, cell in zip(header, row) if name in KINDS} for row in rows)
    return {"columns": known(header), "rows": rows_of(cells)}


def read_csv(path, _):
    return table(open(path, "rb").read().decode(), ",")


def read_excel(path, _):
    text = open(path, "rb").read().decode()
    return {"has a byte order mark": text.startswith("\ufeff"), **table(text.removeprefix("\ufeff"), ",")}


def read_tsv(path, _):
    return table(open(path, "rb").read().decode(), "\t")


MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
PACKAGE = "{http://schemas.openxmlformats.org/package/2006/relationships}"


def relations(book, part):
    folder, _, name = part.rpartition("/")
    path = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
    if path not in book.namelist():
        return {}
    return {link.get("Id"): link.get("Target") for link in ET.fromstring(book.read(path)).iter(PACKAGE + "Relationship")}


def date_styles(book):
    """Which cell styles show dates."""
    root = ET.fromstring(book.read("xl/styles.xml"))
    codes = {f.get("numFmtId"): f.get("formatCode") for f in root.iter(MAIN + "numFmt")}
    styles = root.find(MAIN + "cellXfs") or []
    dates = set(map(str, [*range(14, 23), 45, 46, 47]))
    plain = lambda code: re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", code)
    return [xf.get("numFmtId") in dates or any(c in plain(codes.get(xf.get("numFmtId"), "")) for c in "ymdhs") for xf in styles]


def cell_value(cell, shared, dates, name, shift):
    """A cell as [type, value]."""
    value = cell.find(MAIN + "v")
    text = value.text or "" if value is not None else ""
    what = cell.get("t", "n")
    if what == "inlineStr":
        inline = cell.find(MAIN + "is")
        return ["text", "".join(t.text or "" for t in inline.iter(MAIN + "t"))] if inline is not None else ["text", ""]
    if what == "s":
        return ["text", shared[int(text)]]
    if what != "n":
        return ["boolean" if what == "b" else "error" if what == "e" else "text", text]
    if text == "":
        return None
    style = int(cell.get("s", "0"))
    if dates[style] if style < len(dates) else False:
        return ["date", f"{float(text) + shift:.10f}"]
    return ["misplaced number" if kind(name) in ("date", "text") else "number", number(f"{float(text):.15g}")]


def read_xlsx(path, _):
    book = zipfile.ZipFile(path)
    if len(set(book.namelist())) < len(book.namelist()) or book.testzip():
        raise Refused("a member is damaged or there twice")
    for name in book.namelist():
        if name.endswith((".xml", ".rels")):
            ET.fromstring(book.read(name))
    for needed in ("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml", "xl/_rels/workbook.xml.rels"):
        if needed not in book.namelist():
            raise Refused(f"{needed} is missing")
    if openpyxl:
        openpyxl.load_workbook(path)
    root, paths = ET.fromstring(book.read("xl/workbook.xml")), relations(book, "xl/workbook.xml")
    properties = root.find(MAIN + "workbookPr")
    shift = 1462 if properties is not None and properties.get("date1904") in ("1", "true") else 0
    shared = []
    if "xl/sharedStrings.xml" in book.namelist():
        strings = ET.fromstring(book.read("xl/sharedStrings.xml")).iter(MAIN + "si")
        shared = ["".join(t.text or "" for t in item.iter(MAIN + "t")) for item in strings]
    dates, rows, formulas, merges, columns = date_styles(book), [], [], [], []
    for sheet in root.iter(MAIN + "sheet"):
        part = paths[sheet.get(RELATION + "id")]
        part = part.lstrip("/") if part.startswith("/") else "xl/" + part
        content, links = ET.fromstring(book.read(part)), relations(book, part)
        names = {}
        targets = {link.get("ref"): [links.get(link.get(RELATION + "id")), link.get("location")] for link in content.iter(MAIN + "hyperlink")}
        merges += [[sheet.get("name"), merge.get("ref")] for merge in content.iter(MAIN + "mergeCell")]
        for row in content.iter(MAIN + "row"):
            found = {}
            for cell in row.iter(MAIN + "c"):
                reference = cell.get("r")
                column = re.sub("[0-9]", "", reference)
                name = names.get(column, column)
                if cell.find(MAIN + "f") is not None:
                    formulas.append([sheet.get("name"), reference])
                value = cell_value(cell, shared, dates, name, shift)
                if value and value[1] != "":
                    found[name] = value
                # A link may be missing; where there is one, it leads where its cell says.
                if reference in targets and [value and value[1], None] != targets[reference]:
                    found["link of " + name] = targets[reference]
            titles = {column: value[1] for column, value in found.items() if isinstance(value[1], str)}
            if names and found:
                rows.append(found)
            elif len(known(titles.values())) > 1 and row.get("r") == "1":
                names = titles
                columns.append(sorted(names.values()))
    if not columns:
        raise Refused("there is no sheet of batches")
    return {"columns": columns, "rows": rows_of(rows), "formulas": formulas, "merged": merges}


def plain(name, value):
    """A value of a typed column."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime.datetime):
        return ["date", value.isoformat()]
    if isinstance(value, bool):
        return ["boolean", str(value).lower()]
    if isinstance(value, decimal.Decimal):
        return ["number", number(value)]
    if isinstance(value, (int, float)):
        what = "number" if kind(name) in ("integer", "decimal", "boolean") else "misplaced number"
        return [what, number(f"{value:.15g}" if isinstance(value, float) else value)]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if kind(name) == "json":
        return ["json", deep(loads(value))]
    return ["date", date(value)] if kind(name) == "date" else ["text", value]


def parquet_rows(found):
    return rows_of({name: plain(name, row[name]) for name in known(row)} for row in found)


def is_sorted(file):
    """Whether the rows of each group have the order that the footer declares."""
    for place in range(file.num_row_groups):
        columns = file.read_row_group(place).columns
        keys = [(columns[key.column_index].to_pylist(), key.descending, key.nulls_first)
                for key in file.metadata.row_group(place).sorting_columns]
        for row in range(1, file.metadata.row_group(place).num_rows):
            for values, descending, nulls_first in keys:
                before, after = values[row - 1], values[row]
                if before == after:
                    continue
                if before is None or after is None:
                    fits = (before is None) == nulls_first
                else:
                    fits = (before > after) == descending
                if not fits:
                    return False
                break
    return True


def read_parquet(path, original):
    if pq is None:
        return None
    file = pq.ParquetFile(path)
    arrow = file.read()
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    source = "read_parquet('" + path.replace("'", "''") + "')"
    rows = parquet_rows(arrow.to_pylist())
    # Through its own reading of the schema.
    answer = connection.execute(f"SELECT * FROM {source}")
    names = [column[0] for column in answer.description]
    duck = parquet_rows(dict(zip(names, row)) for row in answer.fetchall())
    # Readers skip by statistics: whatever is there must be found, too.
    found = []
    for name, values in pq.read_table(original).to_pydict().items():
        if name not in names or name not in arrow.schema.names:
            continue
        known = sorted((value for value in values if value is not None), key=str)
        for value in {str(value): value for value in known[:1] + known[len(known) // 2:][:1] + known[-1:]}.values():
            arrow_count = pq.read_table(path, filters=[(name, "==", value)]).num_rows
            duck_count = connection.execute(f'SELECT count(*) FROM {source} WHERE "{name}" = ?', [value]).fetchone()
            found.append([name, str(value), arrow_count, duck_count])
        empty = connection.execute(f'SELECT count(*), count("{name}") FROM {source} WHERE "{name}" IS NULL').fetchone()
        found.append([name, "null", empty])
    columns = sorted([field.name, str(field.type)] for field in arrow.schema if field.name in KINDS)
    # A group that its Bloom filter excludes is not looked at.
    probe = f"SELECT * FROM parquet_bloom_probe('{path}', 'batch_id', ?)"
    ids = pq.read_table(original, columns=["batch_id"])["batch_id"].to_pylist()
    lacking = [value for value in ids if any(row[-1] for row in connection.execute(probe, [value]).fetchall())]
    return {"columns": columns, "rows": rows, "rows in DuckDB": duck, "found": found,
            "sorted as declared": is_sorted(file), "not in the Bloom filter": lacking}


def database(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    checked = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    if checked != ["ok"]:
        raise Refused(f"the database is damaged: {checked[:2]}")
    return connection


def batches(connection, only=""):
    found = connection.execute(f"SELECT * FROM batches {only}")
    names = [column[0] for column in found.description]
    return names, [dict(zip(names, row)) for row in found.fetchall()]


def read_sqlite(path, _):
    names, found = batches(database(path))
    return {"columns": known(names), "rows": rows_of({name: plain(name, row[name]) for name in known(row)} for row in found)}


def read_archive(path, _):
    names, found = batches(database(path), "WHERE vanished IS NULL")
    fields = known(names)
    rows = [{**{name: plain(name, row[name]) for name in fields}, "received": from_object(loads(row["received"]))} for row in found]
    return {"columns": fields, "rows": rows_of(rows)}


READERS = {"json": read_json, "ndjson": read_ndjson, "ndjson.gz": read_gzip, "ndjson.zst": read_zstd, "singer": read_singer,
           "csv": read_csv, "csv --excel": read_excel, "tsv": read_tsv, "xlsx": read_xlsx, "parquet": read_parquet,
           "sqlite": read_sqlite, "archive": read_archive}
forms = {}


def form(what, path, original):
    try:
        return READERS[what](path, original)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300]}


def difference(one, two):
    if "refused" in two:
        return f"it refuses: {two['refused']}"
    for part, value in one.items():
        other = two.get(part)
        if value == other:
            continue
        if isinstance(value, list) and isinstance(other, list):
            lost = [item for item in value if item not in other]
            new = [item for item in other if item not in value]
            if len(lost) == len(new) and lost and all(isinstance(item, dict) for item in lost + new):
                changed = [{name: (was.get(name), now.get(name)) for name in {**was, **now} if was.get(name) != now.get(name)}
                           for was, now in zip(lost, new)]
                return f"{part}: {len(lost)} changed, such as {changed[0]}"[:300]
            return f"{part}: {len(lost)} lost, {len(new)} new: {(lost + new)[:1]}"[:300]
        return f"{part}: {value} became {other}"[:300]
    return None


def main():
    if pq is None:
        print("pyarrow and duckdb are not here: parquet is not judged", file=sys.stderr)
    if openpyxl is None:
        print("openpyxl is not here: xlsx is read with zipfile alone", file=sys.stderr)
    for line in sys.stdin:
        request = json.loads(line)
        what, path, original = request["format"], request["path"], request["original"]
        if original not in forms:
            forms[original] = form(what, original, original)
        if forms[original] is not None and "refused" in forms[original]:
            answer = {"same": False, "why": f"the original cannot be read: {forms[original]['refused']}"}
        elif forms[original] is None:
            answer = {"same": True}
        else:
            # Through JSON, so that both have lists where tuples were.
            one, two = (json.loads(json.dumps(value)) for value in (forms[original], form(what, path, original)))
            why = difference(one, two)
            answer = {"same": why is None, "why": why}
        print(json.dumps(answer), flush=True)


main()
