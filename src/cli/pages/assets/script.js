// What pages can do where there is JavaScript. Without it every page works by links and forms.
"use strict";
(() => {
  const $ = (selector, of = document) => of.querySelector(selector);
  const $$ = (selector, of = document) => [...of.querySelectorAll(selector)];
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const say = (text) => {
    let live = $("#live");
    if (!live) {
      live = make("div", { id: "live", className: "hidden" });
      live.setAttribute("role", "status");
      document.body.append(live);
    }
    live.textContent = text;
  };
  const sleep = (time) => new Promise((done) => setTimeout(done, time));

  // A page as a document. One that is not ready yet is asked for again.
  const load = async (href, signal) => {
    for (;;) {
      const response = await fetch(href, { headers: { accept: "text/html" }, signal, credentials: "same-origin" });
      if (response.status === 403) throw new Error("the server was started anew: open the address that it printed");
      if (response.status !== 202) {
        return { page: new DOMParser().parseFromString(await response.text(), "text/html"), url: response.url };
      }
      await sleep(700);
    }
  };

  // Commands to copy.
  const copying = (of) => {
    for (const button of $$(".cmd button.copy", of)) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const code = $("code", button.parentElement);
        try {
          await navigator.clipboard.writeText(code.textContent);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(code);
          button.textContent = "Selected";
        }
        say(button.textContent);
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    }
  };

  // Numbers of a cell, with their thousands apart; sizes with their units.
  const units = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };
  const value = (cell) => {
    const text = cell ? cell.innerText.trim() : "";
    const match = /^([+-]?[\d,]+(?:\.\d+)?)\s*(%|B|KiB|MiB|GiB|TiB)?$/.exec(text.split("\n")[0]);
    return match ? Number(match[1].replaceAll(",", "")) * (units[match[2]] || 1) : text.toLowerCase();
  };

  // Tables that are sorted by a click on a title, and filtered as one types.
  const tables = (of) => {
    for (const table of $$("table", of)) {
      const body = table.tBodies[0];
      const titles = $$("thead th", table);
      if (!body || !titles.length || table.classList.contains("tree")) continue;
      // A row with the lines below it.
      const groups = () => {
        const all = [];
        for (const row of body.rows) {
          if (row.classList.contains("under") && all.length) all[all.length - 1].push(row);
          else all.push([row]);
        }
        return all;
      };
      if (body.rows.length > 1) {
        titles.forEach((title, column) => {
          if (!title.innerText.trim()) return;
          const button = make("button", { type: "button", title: "Sort the rows shown" });
          button.append(...title.childNodes);
          title.append(button);
          button.addEventListener("click", () => {
            const down = title.getAttribute("aria-sort") !== "descending";
            titles.forEach((other) => other.removeAttribute("aria-sort"));
            title.setAttribute("aria-sort", down ? "descending" : "ascending");
            const keyed = groups().map((group) => [value(group[0].cells[column]), group]);
            keyed.sort(([a], [b]) => {
              const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
              return down === (typeof a === "number") ? -order : order;
            });
            body.append(...keyed.flatMap(([, group]) => group));
          });
        });
      }
      if (body.rows.length > 12) {
        const input = make("input", { type: "search", placeholder: "filter these rows", className: "narrow" });
        input.setAttribute("aria-label", "Filter the rows shown");
        input.addEventListener("input", () => {
          const wanted = input.value.toLowerCase();
          let shown = 0;
          for (const group of groups()) {
            const fits = group.some((row) => row.textContent.toLowerCase().includes(wanted));
            group.forEach((row) => { row.hidden = !fits; });
            shown += fits;
          }
          say(`${shown} rows`);
        });
        (table.closest(".scroll") || table).before(make("p", { className: "narrow" }, input));
      }
    }
  };

  // The dominator tree: what a node dominates comes below it.
  const trees = (of) => {
    for (const table of $$("table.tree", of)) {
      const depth = (row) => Number(row.dataset.depth);
      const below = (row) => {
        const rows = [];
        for (let next = row.nextElementSibling; next && depth(next) > depth(row); next = next.nextElementSibling) rows.push(next);
        return rows;
      };
      for (const twist of $$("a.twist", table)) {
        const row = twist.closest("tr");
        twist.setAttribute("aria-expanded", String(below(row).length > 0));
      }
      table.addEventListener("click", async (event) => {
        const twist = event.target.closest("a.twist");
        if (!twist || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        const row = twist.closest("tr");
        if (twist.getAttribute("aria-expanded") === "true") {
          below(row).forEach((each) => each.remove());
          twist.setAttribute("aria-expanded", "false");
          return;
        }
        if (twist.ariaBusy === "true") return;
        twist.ariaBusy = "true";
        try {
          const { page } = await load(twist.href);
          const rows = $$("table.tree tbody tr", page).slice(1);
          const deeper = depth(row) + 1;
          for (const each of rows) {
            each.dataset.depth = String(deeper);
            each.lastElementChild.className = `name in${Math.min(deeper, 30)}`;
            $("a.twist", each)?.setAttribute("aria-expanded", "false");
          }
          const more = $("p.more a", page);
          if (more) {
            const cells = make("td", { colSpan: 5, className: `name in${Math.min(deeper, 30)}` }, make("a", { href: twist.href, textContent: "more…" }));
            const last = make("tr", {}, cells);
            last.dataset.depth = String(deeper);
            rows.push(last);
          }
          row.after(...rows);
          twist.setAttribute("aria-expanded", "true");
          say(`${rows.length} objects`);
        } catch (error) {
          say(String(error));
          location.href = twist.href;
        } finally {
          twist.ariaBusy = "false";
        }
      });
      table.addEventListener("keydown", (event) => {
        const row = event.target.closest("tr");
        if (!row) return;
        const twist = $("a.twist", row);
        const open = twist && twist.getAttribute("aria-expanded") === "true";
        const focus = (to) => ($("a.twist", to) || $("a", to))?.focus();
        if (event.key === "ArrowRight" && twist && !open) twist.click();
        else if (event.key === "ArrowLeft" && open) twist.click();
        else if (event.key === "ArrowDown" && row.nextElementSibling) focus(row.nextElementSibling);
        else if (event.key === "ArrowUp" && row.previousElementSibling) focus(row.previousElementSibling);
        else return;
        event.preventDefault();
      });
    }
  };

  // Pictures zoom in place: the page of the zoom is loaded, and takes the place of this one. The address follows.
  let zooming;
  const show = (page, url, isNew) => {
    const main = $("main", page);
    if (!main) { location.href = url; return; }
    if (isNew) history.pushState({ zoom: true }, "", url);
    document.title = page.title;
    $("main").replaceWith(document.adoptNode(main));
    prepare($("main"));
  };
  const zoom = async (href, isNew) => {
    zooming?.abort();
    zooming = new AbortController();
    try {
      const { page, url } = await load(href, zooming.signal);
      show(page, url, isNew);
    } catch (error) {
      if (error.name !== "AbortError") location.href = href;
    }
  };
  addEventListener("popstate", () => zoom(location.href, false));
  const isOwn = (link) => new URL(link.href?.baseVal ?? link.href, location.href).pathname === location.pathname;
  const pictures = (of) => {
    for (const figure of $$("figure[data-part=picture]", of)) {
      figure.addEventListener("click", (event) => {
        const link = event.target.closest("a");
        if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !isOwn(link)) return;
        event.preventDefault();
        if (!history.state) history.replaceState({ zoom: true }, "");
        zoom(link.href?.baseVal ?? link.href, true);
      });
    }
  };

  // Parts of a page that take a moment.
  const parts = (of) => {
    for (const part of $$("[data-load]", of)) {
      load(part.dataset.load).then(({ page }) => {
        const table = $("main .scroll", page);
        if (!table) return;
        part.replaceWith(document.adoptNode(table));
        tables(table);
      }).catch((error) => say(String(error)));
    }
  };

  // The console: a history, and a key that runs.
  const console_ = (of) => {
    const form = $("form.console", of);
    if (!form) return;
    const area = $("textarea", form);
    const KEPT = `hprof-cli.${form.dataset.language}`;
    const read = () => { try { return JSON.parse(localStorage.getItem(KEPT)) || []; } catch { return []; } };
    $(".keys", form).hidden = false;
    const past = read();
    const keep = () => {
      const query = area.value.trim();
      if (!query) return;
      const queries = [query, ...read().filter((each) => each !== query)].slice(0, 50);
      try { localStorage.setItem(KEPT, JSON.stringify(queries)); } catch { /* no memory, no history */ }
    };
    form.addEventListener("submit", keep);
    let at = -1;
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
      const step = event.altKey && { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (step) {
        event.preventDefault();
        at = Math.max(-1, Math.min(past.length - 1, at + step));
        area.value = at < 0 ? "" : past[at];
      }
    });
    if (past.length) {
      const select = make("select");
      select.setAttribute("aria-label", "Earlier queries");
      select.append(make("option", { value: "", textContent: "Earlier queries" }));
      past.forEach((query) => select.append(make("option", { value: query, textContent: query.slice(0, 80) })));
      select.addEventListener("change", () => { if (select.value) { area.value = select.value; area.focus(); } });
      $(".row", form).append(select);
    }
  };

  // Menus close by Escape and by a click elsewhere.
  addEventListener("click", (event) => {
    for (const menu of $$("header details[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") $$("header details[open]").forEach((menu) => { menu.open = false; $("summary", menu).focus(); });
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      event.preventDefault();
      $("#search")?.focus();
    }
  });

  // Empty fields of a form do not belong into an address.
  const forms = (of) => {
    for (const form of $$("form:not([method=post])", of)) {
      form.addEventListener("formdata", (event) => {
        for (const [name, text] of [...event.formData]) if (text === "") event.formData.delete(name);
      });
    }
  };

  const prepare = (of) => [copying, tables, trees, pictures, parts, console_, forms].forEach((each) => each(of));
  prepare(document);
})();
