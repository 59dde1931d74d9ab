// A column of ranges: each is empty until it comes near the window, and is emptied again, with its
// height kept, when it is far away. Ten thousand rows scroll like ten.

const NEAR = 1500;
const FAR = 6000;
// Browsers cannot scroll further than some 30 million pixels.
const HIGHEST = 12_000_000;

// Code that is wider or higher than its box is scrolled with the keyboard, too.
const letScroll = (node) => {
  const isCut = (box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
  for (const box of all("pre", node).filter(isCut)) box.setAttribute("tabindex", "0");
};
document.addEventListener("toggle", (event) => {
  if (event.target.open) letScroll(event.target);
}, true);

class Column {
  // options: size of a range, its estimated height in pixels, load(first, last) which returns HTML,
  // prepare(node) for what was loaded, and the tag of a range.
  constructor(node, options) {
    Object.assign(this, { node, tag: "div", prepare: () => {}, ranges: [], count: 0 }, options);
    this.near = new IntersectionObserver((entries) => this.#approach(entries), { rootMargin: `${NEAR}px 0px` });
    this.far = new IntersectionObserver((entries) => this.#leave(entries), { rootMargin: `${FAR}px 0px` });
    node.classList.add("column");
  }

  close() {
    this.near.disconnect();
    this.far.disconnect();
    this.isClosed = true;
  }

  // Has as many items as there are now.
  resize(count) {
    this.count = count;
    const wanted = Math.ceil(count / this.size);
    while (this.ranges.length > wanted) {
      const range = this.ranges.pop();
      this.near.unobserve(range.node);
      this.far.unobserve(range.node);
      range.node.remove();
    }
    for (let n = this.ranges.length; n < wanted; n++) {
      const node = element(this.tag, "", { class: "range" });
      const range = { n, node, isFilled: false, sources: [], asked: 0 };
      node.range = range;
      this.#setHeight(range, this.#estimate(n, wanted));
      this.ranges.push(range);
      this.node.append(node);
      this.near.observe(node);
      this.far.observe(node);
    }
  }

  #estimate(n, wanted) {
    const items = Math.min(this.size, this.count - n * this.size);
    return Math.min(items * this.height, Math.max(HIGHEST / wanted, 100));
  }

  #setHeight(range, height) {
    range.node.style.height = `${Math.round(height)}px`;
  }

  #approach(entries) {
    for (const { target, isIntersecting } of entries) {
      target.range.isNear = isIntersecting;
      if (isIntersecting) this.#need(target.range);
    }
  }

  #leave(entries) {
    for (const { target, isIntersecting } of entries) if (!isIntersecting && target.range.isFilled) this.#empty(target.range);
  }

  #empty(range) {
    if (range.node.contains(document.activeElement)) return;
    const height = range.node.getBoundingClientRect().height;
    range.node.replaceChildren();
    this.#setHeight(range, height);
    Object.assign(range, { isFilled: false, sources: [] });
  }

  // Fills a range that is empty, once however often it is asked for meanwhile.
  #need(range) {
    if (range.isFilled) return null;
    range.filling ??= this.fill(range.n).finally(() => { range.filling = null; });
    return range.filling;
  }

  // Fills a range, or renews what has changed in it.
  async fill(n) {
    const range = this.ranges[n];
    if (!range) return;
    const asked = ++range.asked;
    let html = "";
    try {
      html = await this.load(n * this.size, Math.min(this.count, (n + 1) * this.size) - 1);
    } catch (failure) {
      if (this.isClosed) return;
      if (failure instanceof Refused) { router.refuse(); return; }
      this.keepPlace(() => {
        range.node.style.height = "";
        range.node.replaceChildren(failureNode(explained(failure)));
      });
      return;
    }
    if (this.isClosed || asked !== range.asked || this.ranges[n] !== range) return;
    this.keepPlace(() => this.#renew(range, [...fragment(html).children]));
    letScroll(range.node);
  }

  // Renews the ranges that are filled; what did not change stays as it is, unfolded and focused.
  renew(from = 0) {
    return Promise.all(this.ranges.filter((range) => range.n >= from && range.isFilled).map((range) => this.fill(range.n)));
  }

  #renew(range, next) {
    const sources = next.map((node) => node.outerHTML);
    const now = range.isFilled ? [...range.node.children] : [];
    const focused = range.node.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    if (!range.isFilled) range.node.replaceChildren();
    range.node.style.height = "";
    for (const [n, node] of next.entries()) {
      if (now[n] && sources[n] === range.sources[n]) continue;
      if (now[n]) now[n].replaceWith(node);
      else range.node.append(node);
      this.prepare(node);
      guardWrites(node);
    }
    for (const node of now.slice(next.length)) node.remove();
    Object.assign(range, { isFilled: true, sources });
    if (focused && !range.node.contains(document.activeElement)) one(`a[href="${CSS.escape(focused)}"]`, range.node)?.focus({ preventScroll: true });
  }

  // Changes something without moving what is read.
  keepPlace(change) {
    const anchor = this.#anchor();
    change();
    if (!anchor?.node.isConnected) return;
    const moved = anchor.node.getBoundingClientRect().top - anchor.top;
    if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
  }

  // Returns the first node that is seen, and where it is.
  #anchor() {
    if (scrollY <= 0) return null;
    const edge = barHeight();
    const seen = this.ranges[this.#indexAt(edge)];
    for (let range = seen; range; range = this.ranges[range.n + 1]) {
      const box = range.node.getBoundingClientRect();
      if (box.top > innerHeight) return null;
      if (!range.isFilled) continue;
      for (const node of range.node.children) {
        const { top, bottom } = node.getBoundingClientRect();
        if (bottom > edge && bottom > top) return { node, top };
      }
    }
    return null;
  }

  // Returns the range that holds a height of the window.
  #indexAt(y) {
    let [low, high] = [0, this.ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ranges[middle].node.getBoundingClientRect().bottom <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Returns the item that the window begins with, as well as it is known.
  itemAt(y) {
    const range = this.ranges[this.#indexAt(y)];
    return range ? range.n * this.size : 0;
  }

  // Fills the range of an item, and returns its node.
  async reach(item) {
    const range = this.ranges[Math.min(this.ranges.length - 1, Math.max(0, Math.floor(item / this.size)))];
    if (!range) return null;
    await this.#need(range);
    return range.node;
  }
}
