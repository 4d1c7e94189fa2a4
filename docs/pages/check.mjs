// The part of check.sh that needs a browser: node check.mjs URL NODE_MODULES DIR
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [url, modules, dir] = process.argv.slice(2);
const origin = new URL(url).origin;
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";
const MAX_PAGES = 200;
const sleep = (time) => new Promise((done) => setTimeout(done, time));
const give_up = (why) => { console.error(`check: ${why}`); process.exitCode = 2; throw new Error(why); };

// Pages by plain HTTP, with the cookie for which the token is exchanged.
const entered = await fetch(url, { redirect: "manual" });
const cookie = entered.headers.get("set-cookie").split(";")[0];
const get = (path) => fetch(origin + path, { redirect: "manual", headers: { cookie, accept: "text/html" } });
const ready = async (path) => {
  for (let tries = 0; tries < 600; tries++) {
    const response = await get(path);
    if (response.status !== 202 && response.status !== 503) return response;
    await sleep(200);
  }
  return give_up(`${path} is not ready`);
};

// One page of each kind: a dump, a path without what it is about, and the names of parameters.
const kind = (path) => {
  const { pathname, searchParams } = new URL(path, origin);
  const names = [...searchParams].filter(([, value]) => value).map(([name]) => name);
  return [...pathname.split("/").slice(1, 3), ...[...new Set(names)].sort()].join(" ");
};
// What no link leads to: what is wrong, and what is searched for.
const others = [
  "/1/nothing", "/9/overview", "/1/object/0x1", "/1/object/0xfc2f1518", "/1/class/none", "/1/class/shop.Product",
  "/1/oql?q=SELECT+*+FORM+shop.Product", "/1/oql?q=SELECT+*+FROM+shop.Product+LIMIT+3", "/1/sql?q=SELECT+*+FORM+objects", "/1/sql?q=SELECT+id,class,reachable+FROM+objects+LIMIT+3", "/1/search?q=Product",
  "/1/treemap?of=0x1", "/1/histo?sort=nothing", "/1/refs", "/1/leaks?threshold=1", "/1/threads?stack=1&locals=1", "/1/cpu",
];
const pages = new Map();
const add = async (path, status) => {
  const name = `${String(pages.size).padStart(3, "0")}-${path.replace(/[^a-z0-9.]+/gi, "_").slice(0, 60)}`;
  const response = await ready(path);
  const html = await response.text();
  if (response.status >= 300 && response.status < 400) return [response.headers.get("location")];
  if (!response.headers.get("content-type").startsWith("text/html")) return [];
  if (status && response.status !== status) console.log(`${response.status} ${path}`);
  pages.set(path, { path, name, html });
  const hrefs = [...html.matchAll(/<a [^>]*?href="([^"]*)"/g)].map(([, href]) => href.replaceAll("&amp;", "&"));
  return hrefs.map((href) => (href.startsWith("?") ? path.split("?")[0] + href : href.split("#")[0]));
};
const waiting = await get("/1/overview");
writeFileSync(join(dir, "pages", "waiting.html"), await waiting.text());
const kinds = new Set();
const left = ["/", "/1/", "/2/", "/3/"];
while (left.length && pages.size < MAX_PAGES) {
  const path = left.shift();
  if (!path || path.includes(".json") || pages.has(path)) continue;
  const of = kind(path);
  if (kinds.has(of)) continue;
  kinds.add(of);
  left.push(...await add(path, 200));
}
for (const path of others) if (!pages.has(path)) await add(path);
for (const { name, html } of pages.values()) writeFileSync(join(dir, "pages", `${name}.html`), html);
console.log(`${pages.size} pages of ${kinds.size} kinds`);

// The browser, over WebDriver.
const driver = spawn("chromedriver", ["--port=0"], { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, TMPDIR: dir } });
let session;
const exit = async () => { if (session) await fetch(session, { method: "DELETE" }).catch(() => {}); driver.kill(); };
const port = await new Promise((done, failed) => {
  driver.on("error", failed);
  createInterface({ input: driver.stdout }).on("line", (line) => {
    const port = /successfully on port (\d+)/.exec(line);
    if (port) done(port[1]);
  });
});
const call = async (path, body) => {
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  const { value } = await response.json();
  if (!response.ok) throw new Error(`${value.error}: ${value.message}`);
  return value;
};

// What is wrong: by message and kind of element, with the first such element and all places.
const found = new Map();
const wrong = (what, element, where, why = "") => {
  // Objects, texts and numbers differ from page to page; what is wrong does not.
  const of = element.replaceAll(/0x[0-9a-f]+/g, "").replaceAll(/>[^<]+/g, ">").replaceAll(/[\d.]+/g, "");
  const key = `${what}\n${of}`;
  if (!found.has(key)) found.set(key, { what, element, why, where: new Set() });
  found.get(key).where.add(where);
};

const WINDOWS = [
  { name: "1400 px", width: 1400, scheme: "light" },
  { name: "390 px", width: 390, scheme: "light" },
  { name: "1400 px, dark", width: 1400, scheme: "dark" },
];
// What is closed is opened, so that it is seen; the menu would be above other things.
const OPEN = "for (const each of document.querySelectorAll('main details')) each.open = true";
const AXE = `const done = arguments[arguments.length - 1];
  axe.run(document, { resultTypes: ["violations", "incomplete"] }).then((results) => done(
    Object.fromEntries(["violations", "incomplete"].map((of) => [of, results[of].map((rule) => ({
      id: rule.id, impact: rule.impact, help: rule.help,
      nodes: rule.nodes.map((node) => ({
        html: node.html, target: node.target.join(" "), why: node.failureSummary.split("\\n").slice(1).map((line) => line.trim()).join("; "),
      })),
    }))]))), (error) => done({ error: String(error) }))`;
// The innermost elements beyond the window that nothing scrolls, if the page is wider.
const WIDE = `const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const scrolls = (of) => of && of !== root && (getComputedStyle(of).overflowX !== "visible" || scrolls(of.parentElement));
  const beyond = (of) => of.getBoundingClientRect().right > root.clientWidth + 0.5 && !scrolls(of);
  return [...document.body.querySelectorAll("*")].filter((of) => beyond(of) && ![...of.children].some(beyond))
    .map((of) => ({ html: of.outerHTML.slice(0, 240), why: root.scrollWidth + " px" }))`;
// Contrast in pictures, which axe cannot tell: of a text to the box before it.
const FAINT = `const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  return [...document.querySelectorAll("svg text")].flatMap((text) => {
    const box = text.parentElement.querySelector("rect");
    const [a, b] = [text, box].map((of) => light(getComputedStyle(of).fill));
    const contrast = Math.max(a, b) / Math.min(a, b);
    return contrast < 4.5 ? [{ html: box.outerHTML, why: contrast.toFixed(2) + ":1" }] : [];
  })`;
const axe = readFileSync(join(modules, "axe-core", "axe.min.js"), "utf8");
const unsure = new Map();

try {
  const created = await call(`http://127.0.0.1:${port}/session`, { capabilities: { alwaysMatch: {
    browserName: "chrome",
    "goog:chromeOptions": { binary: process.env.CHROMIUM || undefined, args: [
      "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
      `--user-data-dir=${join(dir, "profile")}`,
    ] },
  } } });
  session = `http://127.0.0.1:${port}/session/${created.sessionId}`;
  const run = (script) => call(`${session}/execute/sync`, { script, args: [] });
  const cdp = (cmd, params) => call(`${session}/goog/cdp/execute`, { cmd, params });

  const look = async (where, view) => {
    for (const { html, why } of await run(WIDE)) wrong("page: wider than the window", html, `${where} (${view.name})`, why);
    for (const { html, why } of await run(FAINT)) wrong("page: faint text in a picture", html, `${where} (${view.name})`, why);
    await run(`${axe}; window.axe = axe`);
    const results = await call(`${session}/execute/async`, { script: AXE, args: [] });
    if (results.error) give_up(`axe on ${where}: ${results.error}`);
    for (const { id, impact, help, nodes } of results.violations) {
      for (const { html, target, why } of nodes) {
        wrong(`axe ${id} (${impact}): ${help}`, html.slice(0, 240), `${where} (${view.name})`, `${target.slice(0, 120)}: ${why}`);
      }
    }
    for (const { id, nodes } of results.incomplete) {
      for (const { why, html } of nodes) {
        const key = `${id}: ${why}`;
        unsure.set(key, { count: (unsure.get(key)?.count ?? 0) + 1, html, where: `${where} (${view.name})` });
      }
    }
  };

  await call(`${session}/url`, { url });
  for (const view of WINDOWS) {
    await cdp("Emulation.setDeviceMetricsOverride", { width: view.width, height: 900, deviceScaleFactor: 1, mobile: false });
    await cdp("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: view.scheme }] });
    for (const { path, name } of pages.values()) {
      await call(`${session}/url`, { url: origin + path });
      await run(OPEN);
      const twist = await run("return document.querySelector('a.twist')");
      if (twist) {
        await call(`${session}/element/${twist[ELEMENT]}/click`, {});
        for (let tries = 0; tries < 50 && await run("return document.querySelector('a.twist').ariaBusy === 'true'"); tries++) await sleep(100);
      }
      await look(path, view);
      if (view === WINDOWS[0]) {
        const html = await run("return document.documentElement.outerHTML");
        writeFileSync(join(dir, "pages", `${name}.script.html`), `<!DOCTYPE html>${html}`);
      }
    }
    await call(`${session}/url`, { url: `${origin}/1/overview` });
    await run("document.querySelector('header details').open = true");
    await look("/1/overview, with the menu open", view);
  }
} finally {
  await exit();
}

// The checker of HTML.
const checked = (arguments_) => {
  const out = execFileSync("java", ["-jar", join(modules, "vnu-jar", "build", "dist", "vnu.jar"), "--format", "json", "--stdout",
    "--exit-zero-always", ...arguments_], { encoding: "utf8", maxBuffer: 1 << 28 });
  for (const { type, subType, message, extract = "", url = "" } of JSON.parse(out).messages) {
    // About texts of a heap, not about the page.
    if (/Charmod|Unicode Normalization/.test(message)) continue;
    const name = url.split("/").pop();
    const page = [...pages.values()].find((page) => name.startsWith(page.name));
    const where = page ? page.path + (name.endsWith(".script.html") ? " (after the script)" : "") : name;
    wrong(`vnu ${subType ?? type}: ${message}`, extract.slice(0, 240), where);
  }
};
checked(["--skip-non-html", join(dir, "pages")]);
for (const [file, option] of [["icon.svg", "--svg"], ["style.css", "--css"]]) {
  const text = await (await get(`/assets/${file}`)).text();
  writeFileSync(join(dir, file), text);
  checked([option, join(dir, file)]);
}

for (const { what, element, why, where } of [...found.values()].sort((a, b) => a.what.localeCompare(b.what))) {
  const [first, ...more] = where;
  console.log(`\n${what}\n    ${element}${why && `\n    ${why}`}\n    on ${first}${more.length ? `, and ${more.length} more: ${more.slice(0, 4).map((place) => place.slice(0, 80)).join(", ")}` : ""}`);
}
if (unsure.size) console.log("\naxe could not decide");
for (const [why, { count, html, where }] of unsure) console.log(`    ${count} times ${why}\n        ${html.slice(0, 200)} on ${where}`);
console.log(found.size ? `\n${found.size} violations` : "\nno violations");
process.exitCode = found.size ? 1 : 0;
