// What was spent, and how the store is.

const costsPage = () => {
  const form = one("#costs-form");
  const chosen = () => given(new URLSearchParams(new FormData(form)));

  const part = (id, name, parameters) => {
    const node = one(id);
    node.setAttribute("aria-busy", "true");
    const done = showing(node, async () => fill(node, (await ask(name, parameters)).html));
    return done.finally(() => node.removeAttribute("aria-busy"));
  };
  const showGroups = () => part("#spending", "spending", chosen());
  const show = () => {
    const parameters = chosen();
    const scope = parameters.get("scope");
    parameters.delete("by");
    return Promise.all([
      showGroups(),
      part("#year", "year", { scope, today: today() }),
      part("#five-hours", "five-hours", parameters),
      part("#dearest", "dearest", parameters),
    ]);
  };

  const restoreForm = () => {
    const parameters = new URLSearchParams(location.search);
    for (const control of form.elements) if (control.name) control.value = parameters.get(control.name) ?? control.options?.[0].value ?? "";
  };
  form.addEventListener("change", (event) => {
    router.rewrite(`/costs?${chosen()}`);
    if (event.target.name === "by") showGroups();
    else show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  restoreForm();
  return {
    title: "Costs",
    ready: show(),
    steps: ".amounts a",
    changed: later(2000, show),
  };
};

document.addEventListener("click", (event) => {
  const address = event.target.closest?.("[data-href]:not(.moment)")?.dataset.href;
  if (address) router.go(address);
});

const healthPage = () => {
  const node = one("#health");
  const show = () => {
    node.setAttribute("aria-busy", "true");
    const done = showing(node, async () => fill(node, (await ask("health")).html));
    return done.finally(() => node.removeAttribute("aria-busy"));
  };
  one("#again").addEventListener("click", async () => {
    await show();
    say("Checked again");
  });
  return { title: "Health", ready: show() };
};
