#!/bin/sh
# Validates what `hprof-cli check` writes for CI servers by their schemas.
#
#   validate.sh REPORT.xml JUNIT.xsd...      e.g. junit-10.xsd of Jenkins' xUnit plugin, JUnit.xsd by Windy Road
#   validate.sh REPORT.sarif SCHEMA.json     sarif-schema-2.1.0.json of OASIS
#
# Needs Python with lxml (XML) or jsonschema (SARIF).
set -eu
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
report=$1
shift
for schema in "$@"; do
    python3 - "$report" "$schema" <<'PYTHON'
import json
import sys

report, schema = sys.argv[1:]
if schema.endswith(".xsd"):
    from lxml import etree

    errors = etree.XMLSchema(etree.parse(schema))
    document = etree.parse(report)
    ok = errors.validate(document)
    problems = [str(error) for error in errors.error_log]
else:
    import jsonschema

    with open(schema, encoding="utf-8") as file:
        validator = jsonschema.validators.validator_for(rules := json.load(file))(
            rules, format_checker=jsonschema.FormatChecker()
        )
    with open(report, encoding="utf-8") as file:
        problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(json.load(file))]
    ok = not problems
print(*problems, f"{report}: {'valid' if ok else 'NOT valid'} by {schema}", sep="\n")
sys.exit(not ok)
PYTHON
done
