// Dialogs: what would be done, a question, and the report of what was done.

for (const dialog of all("dialog")) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
  });
}

// The report of what was done, with the button that reverses it.
const reporting = { reverse: null, timer: 0 };
const report = (message, reverse) => {
  const box = one("#report");
  one("span", box).textContent = message;
  one("[data-reverse]", box).hidden = !reverse;
  reporting.reverse = reverse;
  box.hidden = false;
  clearTimeout(reporting.timer);
  if (!reverse) reporting.timer = setTimeout(() => { box.hidden = true; }, 4000);
};
one("#report").addEventListener("click", (event) => {
  if (event.target.closest("[data-reverse]")) plan(reporting.reverse);
  if (event.target.closest("button")) one("#report").hidden = true;
});

const problem = (dialog, failure) => {
  const line = one(".problem", dialog);
  line.hidden = !failure;
  line.textContent = failure ? [failure.message, ...(failure.hints ?? [])].join(". ") : "";
};

// Shows what an action would do, and does it if that is wanted. `order` is an action and the
// workspace whose plan it is.
const planning = { order: null, token: "", canDo: false };
const planBox = one("#plan");

const plan = async (order) => {
  planning.order = order;
  planning.canDo = false;
  one("#plan-title").textContent = "What would happen…";
  one(".plan-lines", planBox).replaceChildren();
  one("fieldset", planBox).hidden = true;
  problem(planBox, null);
  readyToDo();
  if (!planBox.open) planBox.showModal();
  try {
    showPlan(await post("plan", { w: order.w ?? "", action: order.action }));
  } catch (failure) {
    one("#plan-title").textContent = "This cannot be done";
    problem(planBox, explained(failure));
  }
};

const showPlan = (made) => {
  planning.token = made.token;
  planning.canDo = made.possible || made.choices.length > 0;
  one("#plan-title").textContent = made.title;
  one(".plan-lines", planBox).replaceChildren(...made.lines.map(planLine));
  one("fieldset", planBox).hidden = made.choices.length === 0;
  one(".choices", planBox).replaceChildren(...made.choices.map(choiceNode));
  const button = one("[type=submit]", planBox);
  button.textContent = "Do it";
  readyToDo();
  (one("input", planBox) ?? (button.disabled ? one("[data-close]", planBox) : button)).focus();
};

const planLine = (spans) => {
  const line = element("li");
  for (const span of spans) line.append(element("span", span.text, span.class ? { class: span.class } : {}));
  return line;
};

const choiceNode = ({ on_conflict, text }) => {
  const label = element("label", "", { class: "choice" });
  const words = element("span");
  words.append(element("b", on_conflict), ` ${text}`);
  label.append(element("input", "", { type: "radio", name: "on_conflict", value: on_conflict }), words);
  return label;
};

const chosen = () => one("input[name=on_conflict]:checked", planBox)?.value;

// Where files have other changes, one of the choices must be made first.
const readyToDo = () => {
  const mustChoose = !one("fieldset", planBox).hidden && !chosen();
  one("[type=submit]", planBox).disabled = !planning.canDo || mustChoose;
};
one("fieldset", planBox).addEventListener("change", readyToDo);

one("form", planBox).addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = one("[type=submit]", planBox);
  if (button.dataset.again) {
    delete button.dataset.again;
    plan(planning.order);
    return;
  }
  button.disabled = true;
  planBox.setAttribute("aria-busy", "true");
  try {
    const { w = "" } = planning.order;
    const done = await post("apply", { w, token: planning.token, on_conflict: chosen() ?? "stop" });
    planBox.close();
    report(done.message, done.reverse && { w, action: done.reverse });
    router.page?.changed?.("workspace", {});
  } catch (failure) {
    problem(planBox, explained(failure));
    button.textContent = "Plan again";
    button.dataset.again = "yes";
    button.disabled = false;
  }
  planBox.removeAttribute("aria-busy");
});
planBox.addEventListener("close", () => { delete one("[type=submit]", planBox).dataset.again; });

// Asks for a line of text; returns nothing if it was cancelled.
const askText = ({ title, label, value = "", note = "" }) => {
  const box = one("#ask");
  const field = one("input", box);
  one("#ask-title").textContent = title;
  one("label span", box).textContent = label;
  one(".note", box).textContent = note;
  field.value = value;
  box.returnValue = "";
  box.showModal();
  field.select();
  return new Promise((answer) => {
    box.addEventListener("close", () => answer(box.returnValue === "go" ? field.value : null), { once: true });
  });
};
one("#ask form").addEventListener("submit", (event) => {
  event.preventDefault();
  one("#ask").close("go");
});

const fork = async (place, w) => {
  const directory = await askText({
    title: "Fork from here",
    label: "Directory",
    note: "The files as they were go there, and a copy of the session that ends here.",
  });
  if (directory) plan({ w, action: { do: "fork", ...place, directory } });
};
